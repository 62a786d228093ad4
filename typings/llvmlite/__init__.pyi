from . import binding as binding

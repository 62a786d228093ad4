"""The way of a program to a target: passes of three kinds, stages of them, and one driver.

A pass has a name, options and `apply(ctx, module)`, whoever's it is: one of ours on an xDSL module,
one of ours on a module of upstream's bindings, or upstream's own by name. A stage is a name and
the texts of its passes; a pipeline is a tuple of stages, so that it can be printed, changed and
read back. The context carries what a module does not hold: weights, what the target is, and what
earlier passes leave for later ones.
"""

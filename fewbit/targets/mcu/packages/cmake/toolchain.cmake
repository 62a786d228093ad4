# GCC for @core@, as the library is compiled for.

set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR @core@)
set(CMAKE_C_COMPILER @compiler@-gcc)
set(CMAKE_C_FLAGS_INIT "@flags@")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

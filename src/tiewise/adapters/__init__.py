"""Drop-ins: the shapes of other packages over the exact arithmetic of Tiewise, one module a package.

Change one import line and everything else stays as it is, the numbers included: by default a drop-in breaks ties as
its package does. ``value="expected"`` returns the expectation over all orders of the ties instead. Adapters import the
core, never the reverse, and the package that one stands in for need not be installed.
"""

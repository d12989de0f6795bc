//! Integer and boolean expressions over the parameters of a problem.

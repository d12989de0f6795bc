//! Any CBLAS, loaded at run time.

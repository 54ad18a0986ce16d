//! Effects, one a file.

//! Fakes and drivers that the test targets share.

//! The frame of every hook executable.

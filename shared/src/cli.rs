//! The frame of every tool that is not a hook.

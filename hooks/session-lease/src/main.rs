//! See the package's README.

fn main() {}

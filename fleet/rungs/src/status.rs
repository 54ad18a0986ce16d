pub(crate) use crate::log::{StatusArgs as Args, status as run};

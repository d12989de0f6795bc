//! How many threads a library computes with.

use super::symbols::{Decoration, Exports};
use std::ffi::c_int;
use std::fmt;

/// What a library was asked for, and what it says it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Threads {
    /// The function that set the number; none where the library has no interface for it.
    setter: Option<String>,
    /// As the library says afterwards, where it does.
    pub has: Option<i64>,
}

impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.setter, self.has) {
            (Some(setter), Some(has)) => write!(f, "{has}, set by {setter}"),
            (Some(setter), None) => write!(f, "unknown, set by {setter}"),
            (None, _) => f.write_str("not set: no interface for it is exported"),
        }
    }
}

impl Threads {
    /// Asks the library to compute with so many threads, 1 being the calling one.
    pub(super) fn set(exports: &Exports, decoration: Decoration, count: u32) -> Threads {
        let count = c_int::try_from(count).unwrap_or(c_int::MAX);
        let [set, get] =
            ["openblas_set_num_threads", "openblas_get_num_threads"].map(|base| exports.decorated(decoration, base));
        if let Some(setter) = set {
            // SAFETY: `void openblas_set_num_threads(int)` and `int openblas_get_num_threads(void)`.
            return unsafe { Threads::with(exports, setter, get.as_deref(), count) };
        }
        // SAFETY: `void MKL_Set_Num_Threads(int)` and `int MKL_Get_Max_Threads(void)`.
        let mkl =
            || unsafe { Threads::with(exports, "MKL_Set_Num_Threads".to_owned(), Some("MKL_Get_Max_Threads"), count) };
        if exports.address("MKL_Set_Num_Threads").is_some() {
            return mkl();
        }
        Threads::of_blis(exports, count).unwrap_or(Threads { setter: None, has: None })
    }

    /// # Safety
    /// The functions are `void(int)` and `int(void)`.
    unsafe fn with(exports: &Exports, setter: String, getter: Option<&str>, count: c_int) -> Threads {
        // SAFETY: the caller vouches for the types; any positive number is legal.
        unsafe {
            if let Some(set) = exports.function::<unsafe extern "C" fn(c_int)>(&setter) {
                set(count);
            }
            let get = getter.and_then(|name| exports.function::<unsafe extern "C" fn() -> c_int>(name));
            Threads { setter: Some(setter), has: get.map(|get| get().into()) }
        }
    }

    fn of_blis(exports: &Exports, count: c_int) -> Option<Threads> {
        let setter = "bli_thread_set_num_threads";
        // SAFETY: `void bli_thread_set_num_threads(dim_t)` and `dim_t bli_thread_get_num_threads(void)`, a dim_t of one
        // register.
        unsafe {
            exports.function::<unsafe extern "C" fn(isize)>(setter)?(count as isize);
            let get = exports.function::<unsafe extern "C" fn() -> isize>("bli_thread_get_num_threads");
            Some(Threads { setter: Some(setter.to_owned()), has: get.map(|get| get() as i64) })
        }
    }
}

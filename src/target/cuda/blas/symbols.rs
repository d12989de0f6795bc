//! Functions of a library that is opened at run time.

/// Declares a struct of functions, each with the name and the prototype that its header gives it. `load` says which function
/// a library lacks.
macro_rules! functions {
    ($(#[$doc:meta])* $name:ident { $($field:ident = $symbol:literal: fn($($arg:ty),* $(,)?) -> $result:ty;)* }) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            $(pub $field: unsafe extern "C" fn($($arg),*) -> $result,)*
            /// Stays open as long as its functions can be called.
            _library: ::libloading::Library,
        }

        impl $name {
            /// # Errors
            /// One sentence, where a function is missing.
            pub fn load(library: ::libloading::Library, path: &::std::path::Path) -> Result<$name, String> {
                $(
                    // SAFETY: the header gives the function this prototype; the library lives as long as the pointer.
                    let $field = unsafe {
                        library.get::<unsafe extern "C" fn($($arg),*) -> $result>(concat!($symbol, "\0").as_bytes())
                    };
                    let $field = *$field.map_err(|_| format!("{} has no {}", path.display(), $symbol))?;
                )*
                Ok($name { $($field,)* _library: library })
            }
        }
    };
}

pub(in crate::target::cuda) use functions;

//! From an instruction address to module, offset and symbol.
//!
//! The worker that faulted knows where its libraries were mapped and is dead or dying; the
//! supervisor has the time to open their files. So the worker sends [`Modules`] when it starts, and
//! the supervisor calls [`locate`].

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use super::elf::{FileVersion, Image};

pub use super::maps::{Module, Modules, Region};

/// Where an instruction lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeLocation {
    pub module: PathBuf,
    /// The address in the file's own address space, which is what `addr2line -e` wants. If the file
    /// could not be read: the offset in the file.
    pub offset: u64,
    /// Demangled if it is a Rust name, without the hash.
    pub symbol: Option<String>,
    /// Bytes from the start of the symbol.
    pub symbol_offset: Option<u64>,
}

impl fmt::Display for CodeLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.module.file_name().unwrap_or(self.module.as_os_str());
        write!(f, "{}+{:#x}", name.display(), self.offset)?;
        if let Some(symbol) = &self.symbol {
            write!(f, " ({symbol}+{:#x})", self.symbol_offset.unwrap_or(0))?;
        }
        Ok(())
    }
}

/// Where the instruction at `pc` lies, of a process that has these modules mapped; `None` if it is
/// in none of them.
///
/// Files are read once per version of the file and kept.
pub fn locate(modules: &[Module], pc: u64) -> Option<CodeLocation> {
    let module = modules.iter().find(|module| (module.start..module.end).contains(&pc))?;
    let file_offset = (pc - module.start).checked_add(module.file_offset)?;
    let mut location =
        CodeLocation { module: module.path.clone(), offset: file_offset, symbol: None, symbol_offset: None };
    let image = image_of(&module.path).ok();
    if let Some((image, address)) = image.and_then(|image| image.address_of(file_offset).map(|at| (image, at))) {
        location.offset = address;
        if let Some((name, offset)) = image.symbol_at(address) {
            location.symbol = Some(format!("{:#}", rustc_demangle::demangle(name)));
            location.symbol_offset = Some(offset);
        }
    }
    Some(location)
}

type Cache = HashMap<PathBuf, (FileVersion, Arc<Image>)>;

static CACHE: Mutex<Option<Cache>> = Mutex::new(None);

fn image_of(path: &Path) -> io::Result<Arc<Image>> {
    let version = FileVersion::of(path)?;
    let mut cache = CACHE.lock().unwrap_or_else(|poison| poison.into_inner());
    let cache = cache.get_or_insert_default();
    if let Some((known, image)) = cache.get(path)
        && *known == version
    {
        return Ok(image.clone());
    }
    let image = Arc::new(Image::read(path)?);
    cache.insert(path.into(), (version, image.clone()));
    Ok(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    extern "C" fn a_function_of_the_test_binary() -> u32 {
        std::hint::black_box(17)
    }

    fn here(pc: u64) -> CodeLocation {
        locate(&Modules::read_self().unwrap().modules, pc).unwrap()
    }

    fn address_in(library: &str, symbol: &str) -> u64 {
        // SAFETY: the C library's initialisers may run anywhere; the symbol is only looked at, and
        // its type has the size of a pointer.
        unsafe {
            let library = libloading::Library::new(library).unwrap();
            let address = *library.get::<*const ()>(symbol.as_bytes()).unwrap() as u64;
            // It stays mapped for the test.
            std::mem::forget(library);
            address
        }
    }

    #[test]
    fn a_function_of_this_program_is_named() {
        let pc = a_function_of_the_test_binary as *const () as u64;
        assert_eq!(a_function_of_the_test_binary(), 17);
        let location = here(pc + 1);
        assert_eq!(location.module, std::env::current_exe().unwrap());
        let symbol = location.symbol.as_deref().unwrap();
        assert!(symbol.ends_with("symbol::tests::a_function_of_the_test_binary"), "{symbol}");
        assert_eq!(location.symbol_offset, Some(1));
        assert!(location.to_string().ends_with("test_binary+0x1)"));
    }

    #[test]
    fn functions_of_a_stripped_library_are_named() {
        for name in ["cosh", "acosh"] {
            let location = here(address_in("libm.so.6", name));
            assert!(location.module.ends_with("libm.so.6"), "{location}");
            let symbol = location.symbol.as_deref().unwrap();
            assert!(symbol.contains("cos"), "{location}");
            assert_eq!(location.symbol_offset, Some(0));
        }
    }

    /// The loader picks among several `cos`, whose own names are stripped: no name is better than
    /// that of a neighbour.
    #[test]
    fn an_indirect_function_is_in_its_library() {
        let location = here(address_in("libm.so.6", "cos"));
        assert!(location.module.ends_with("libm.so.6"));
        let symbol = location.symbol.as_deref().unwrap_or("cos");
        assert!(symbol.contains("cos"), "{location}");
    }

    #[test]
    fn a_file_that_vanished_gives_module_and_offset() {
        let module = Module { path: "/no/such/libgone.so.3".into(), start: 0x10000, end: 0x20000, file_offset: 0x3000 };
        let location = locate(&[module], 0x10234).unwrap();
        assert_eq!(location.offset, 0x3234);
        assert_eq!(location.symbol, None);
        assert_eq!(location.to_string(), "libgone.so.3+0x3234");
    }

    #[test]
    fn a_file_that_is_not_an_object_gives_module_and_offset() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "no ELF").unwrap();
        let module = Module { path, start: 0, end: 4096, file_offset: 0 };
        assert_eq!(locate(&[module], 5).unwrap().to_string(), "text+0x5");
    }

    #[test]
    fn an_address_in_no_module_is_nowhere() {
        let modules = Modules::read_self().unwrap().modules;
        assert_eq!(locate(&modules, 0), None);
        assert_eq!(locate(&modules, u64::MAX), None);
    }

    #[test]
    fn a_rebuilt_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("module");
        std::fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
        let first = image_of(&path).unwrap();
        assert!(Arc::ptr_eq(&first, &image_of(&path).unwrap()));
        std::fs::write(&path, "no ELF").unwrap();
        assert!(image_of(&path).is_err());
    }
}

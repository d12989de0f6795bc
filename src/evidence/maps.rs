//! What this process has mapped, as far as a fault may have to do with it.

use std::collections::HashSet;
use std::path::PathBuf;
use std::{fs, io};

use serde::{Deserialize, Serialize};

/// One executable mapping of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Ends in ` (deleted)` if the file was removed or replaced after it was mapped.
    pub path: PathBuf,
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Offset in the file of the byte at `start`.
    pub file_offset: u64,
}

/// A range of addresses that has a name: `[heap]`, `[stack]`, `[vdso]` and their like, and every
/// readable mapping of a file that also has an executable one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    pub start: u64,
    /// First address after it.
    pub end: u64,
    pub name: String,
}

/// The mappings of a process by address, without those that have no name: arenas, mostly.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modules {
    pub modules: Vec<Module>,
    pub regions: Vec<Region>,
}

impl Modules {
    /// Reads `/proc/self/maps`.
    pub fn read_self() -> io::Result<Modules> {
        let text = fs::read("/proc/self/maps")?;
        Ok(Modules::parse(&String::from_utf8_lossy(&text)))
    }

    /// Reads `/proc/PID/maps`; empty once the process has ended.
    pub fn read_of(pid: i32) -> io::Result<Modules> {
        let text = fs::read(format!("/proc/{pid}/maps"))?;
        Ok(Modules::parse(&String::from_utf8_lossy(&text)))
    }

    /// The named region that holds an address.
    pub fn region_at(&self, address: u64) -> Option<&Region> {
        self.regions.iter().find(|region| (region.start..region.end).contains(&address))
    }

    fn parse(text: &str) -> Modules {
        let mappings: Vec<Mapping> = text.lines().filter_map(Mapping::parse).collect();
        let is_code = |mapping: &&Mapping| mapping.executable && mapping.name.starts_with('/');
        let modules: Vec<Module> = mappings
            .iter()
            .filter(is_code)
            .map(|mapping| Module {
                path: mapping.name.into(),
                start: mapping.start,
                end: mapping.end,
                file_offset: mapping.file_offset,
            })
            .collect();
        let libraries: HashSet<&str> = mappings.iter().filter(is_code).map(|m| m.name).collect();
        let regions = mappings
            .iter()
            .filter(|mapping| {
                let special = mapping.name.starts_with('[') && !mapping.name.starts_with("[anon");
                special || mapping.readable && libraries.contains(mapping.name)
            })
            .map(|mapping| Region { start: mapping.start, end: mapping.end, name: mapping.name.into() })
            .collect();
        Modules { modules, regions }
    }
}

/// One line of the file.
struct Mapping<'a> {
    start: u64,
    end: u64,
    readable: bool,
    executable: bool,
    file_offset: u64,
    name: &'a str,
}

impl Mapping<'_> {
    /// Format: `start-end rwxp offset device inode   name`, see proc_pid_maps(5).
    fn parse(line: &str) -> Option<Mapping<'_>> {
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let access = fields.next()?;
        let file_offset = fields.next()?;
        let (_device, _inode) = (fields.next()?, fields.next()?);
        Some(Mapping {
            start: hexadecimal(start)?,
            end: hexadecimal(end)?,
            readable: access.starts_with('r'),
            executable: access.as_bytes().get(2) == Some(&b'x'),
            file_offset: hexadecimal(file_offset)?,
            name: fields.next().unwrap_or_default().trim_start(),
        })
    }
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
00400000-00401000 r--p 00000000 fe:00 11                                 /opt/my program
00401000-00403000 r-xp 00001000 fe:00 11                                 /opt/my program
01000000-01021000 rw-p 00000000 00:00 0                                  [heap]
7f0000000000-7f0000001000 rw-s 00000000 00:01 5                          /memfd:arena (deleted)
7f0000001000-7f8000001000 ---p 00000000 00:00 0 
7f8000001000-7f8000002000 r--p 00000000 fe:00 12                         /usr/share/data
7f8000002000-7f8000004000 r-xp 00020000 fe:00 13                         /usr/lib/libold.so (deleted)
7f8000004000-7f8000005000 ---p 00022000 fe:00 13                         /usr/lib/libold.so (deleted)
7f8000005000-7f8000006000 rw-p 00000000 00:00 0                          [anon:pool]
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
7ffc00030000-7ffc00032000 r-xp 00000000 00:00 0                          [vdso]
";

    #[test]
    fn modules_are_the_executable_mappings_of_files() {
        let modules = Modules::parse(MAPS).modules;
        assert_eq!(modules.len(), 2);
        assert_eq!(modules[0].path, PathBuf::from("/opt/my program"));
        let range = (modules[0].start, modules[0].end, modules[0].file_offset);
        assert_eq!(range, (0x401000, 0x403000, 0x1000));
        assert!(modules[1].path.ends_with("libold.so (deleted)"));
    }

    #[test]
    fn regions_have_names_and_are_not_arenas() {
        let modules = Modules::parse(MAPS);
        let names: Vec<&str> = modules.regions.iter().map(|r| r.name.as_str()).collect();
        let program = "/opt/my program";
        let library = "/usr/lib/libold.so (deleted)";
        assert_eq!(names, [program, program, "[heap]", library, "[stack]", "[vdso]"]);
        assert_eq!(modules.region_at(0x7ffc_0000_0008).unwrap().name, "[stack]");
        assert_eq!(modules.region_at(0x7f00_0000_0000), None);
    }

    #[test]
    fn this_process_survives_the_way_through_json() {
        let modules = Modules::read_self().unwrap();
        assert!(!modules.modules.is_empty());
        let json = serde_json::to_string(&modules).unwrap();
        assert_eq!(serde_json::from_str::<Modules>(&json).unwrap(), modules);
        let constant = modules.region_at(MAPS.as_ptr() as u64).unwrap();
        assert_eq!(PathBuf::from(&constant.name), std::env::current_exe().unwrap());
    }
}

//! The machine and the libraries a finding was made with. What cannot be read is "unknown"; reading never fails.

use crate::target::Description;
use std::fs;
use std::path::{Path, PathBuf};

/// Said of everything that was not read.
pub const UNKNOWN: &str = "unknown";

/// Where a finding was made, in words for people; nothing is computed from it.
///
/// Findings are published: neither the machine's name nor the user's is part of it, and paths below the home folder begin
/// with `~`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// Version of this program.
    pub shrinkfault: String,
    /// Name and version of the system, as /etc/os-release has it.
    pub os: String,
    /// Kernel name, release and machine.
    pub kernel: String,
    /// Model name of the first processor, and how many there are.
    pub cpu: String,
    pub memory: String,
    pub page: String,
    /// Version line of the C library that this program runs on.
    pub libc: String,
    pub device: String,
    /// What the target said of itself: paths, versions, build ids, digests. Names are unique.
    pub target: Vec<(String, String)>,
}

impl Default for Environment {
    /// Nothing is known but the program's version.
    fn default() -> Environment {
        let unknown = || UNKNOWN.to_owned();
        Environment {
            shrinkfault: env!("CARGO_PKG_VERSION").to_owned(),
            os: unknown(),
            kernel: unknown(),
            cpu: unknown(),
            memory: unknown(),
            page: unknown(),
            libc: unknown(),
            device: unknown(),
            target: vec![],
        }
    }
}

impl Environment {
    /// Reads this machine. `device` names the device the target ran on.
    pub fn read(device: &str, description: &Description) -> Environment {
        let mut environment = Environment {
            os: os_name(&text("/etc/os-release")),
            kernel: kernel(),
            cpu: cpu(&text("/proc/cpuinfo")),
            memory: memory(&text("/proc/meminfo")),
            page: page_bytes(&fs::read("/proc/self/auxv").unwrap_or_default()),
            libc: libc_version(&text("/proc/self/maps")),
            device: known(device.to_owned()),
            ..Environment::default()
        };
        if !description.title.is_empty() {
            environment.add("title", &description.title);
        }
        for (name, value) in &description.identity {
            environment.add(name, value);
        }
        environment
    }

    /// Adds a fact about the target; a name that is taken gets a number.
    pub fn add(&mut self, name: &str, value: &str) {
        let taken = |n: &str| self.target.iter().any(|(have, _)| have == n);
        let mut free = name.to_owned();
        let mut number = 2;
        while taken(&free) {
            free = format!("{name} {number}");
            number += 1;
        }
        let home = std::env::var("HOME").unwrap_or_default();
        self.target.push((free, known(without_home(value, &home))));
    }
}

/// The text with `~` for the home folder, wherever a path begins with it.
fn without_home(text: &str, home: &str) -> String {
    match home.trim_end_matches('/') {
        "" => text.to_owned(),
        home => text.replace(&format!("{home}/"), "~/"),
    }
}

fn known(text: String) -> String {
    if text.trim().is_empty() { UNKNOWN.to_owned() } else { text }
}

fn text(path: &str) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

fn line(path: &str) -> String {
    known(text(path).lines().next().unwrap_or_default().trim().to_owned())
}

/// `PRETTY_NAME` of an os-release file.
fn os_name(release: &str) -> String {
    let name = release.lines().find_map(|l| l.strip_prefix("PRETTY_NAME=")).unwrap_or_default();
    known(name.trim().trim_matches(['"', '\'']).to_owned())
}

fn kernel() -> String {
    let (kind, release) = (line("/proc/sys/kernel/ostype"), line("/proc/sys/kernel/osrelease"));
    if kind == UNKNOWN && release == UNKNOWN { kind } else { format!("{kind} {release} {}", std::env::consts::ARCH) }
}

/// Model of the first processor; where the file has no model name (aarch64), its numbers.
fn cpu(info: &str) -> String {
    let field = |name: &str| {
        info.lines().find_map(|l| {
            let (key, value) = l.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    };
    let model = field("model name")
        .or_else(|| Some(format!("implementer {} part {}", field("CPU implementer")?, field("CPU part")?)));
    let count = info.lines().filter(|l| l.split(':').next().is_some_and(|k| k.trim() == "processor")).count();
    match model {
        Some(model) => format!("{model} ({count} processors)"),
        None => UNKNOWN.to_owned(),
    }
}

fn memory(info: &str) -> String {
    let kib = info.lines().find_map(|l| l.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or_else(|| UNKNOWN.to_owned(), |k| format!("{} MiB", k / 1024))
}

/// The entry AT_PAGESZ (6) of an auxiliary vector: pairs of machine words. Source: getauxval(3), elf.h.
fn page_bytes(auxv: &[u8]) -> String {
    const WORD: usize = size_of::<usize>();
    const AT_PAGESZ: usize = 6;
    let word = |bytes: &[u8]| bytes.try_into().map(usize::from_ne_bytes).unwrap_or(0);
    let mut pairs = auxv.chunks_exact(2 * WORD).map(|pair| (word(&pair[..WORD]), word(&pair[WORD..])));
    pairs.find(|(key, _)| *key == AT_PAGESZ).map_or_else(|| UNKNOWN.to_owned(), |(_, v)| format!("{v} bytes"))
}

/// The line by which the mapped C library names itself ("GNU C Library (...) stable release version 2.36.").
fn libc_version(maps: &str) -> String {
    let path: Option<PathBuf> = maps.lines().find_map(|l| {
        let path = Path::new(l.get(l.find('/')?..)?);
        let name = path.file_name()?.to_str()?;
        (name.starts_with("libc.so") || name.starts_with("libc-")).then(|| path.to_owned())
    });
    let banner = path.and_then(|p| fs::read(p).ok()).and_then(|bytes| banner(&bytes));
    banner.unwrap_or_else(|| UNKNOWN.to_owned())
}

fn banner(bytes: &[u8]) -> Option<String> {
    const START: &[u8] = b"GNU C Library ";
    let at = bytes.windows(START.len()).position(|w| w == START)?;
    let end = bytes[at..].iter().take(200).position(|b| *b == b'\n' || *b == 0)?;
    std::str::from_utf8(&bytes[at..at + end]).ok().map(|t| t.trim_end_matches('.').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_kernel_and_pages() {
        let description = Description {
            title: "a library".into(),
            identity: vec![
                ("path".into(), "/a".into()),
                ("path".into(), "/b".into()),
                ("soname".into(), String::new()),
            ],
            ..Description::default()
        };
        let e = Environment::read("cpu", &description);
        assert!(e.kernel.starts_with("Linux "), "{}", e.kernel);
        assert!(e.page.ends_with(" bytes") && e.memory.ends_with(" MiB"), "{e:?}");
        let names: Vec<&str> = e.target.iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(names, ["title", "path", "path 2", "soname"]);
        assert_eq!(e.target[3].1, UNKNOWN);
    }

    #[test]
    fn the_home_folder_is_not_named() {
        assert_eq!(without_home("/home/a/lib/libblas.so", "/home/a"), "~/lib/libblas.so");
        assert_eq!(without_home("/home/a/x /home/a/y", "/home/a/"), "~/x ~/y");
        assert_eq!(without_home("/home/ab/x", "/home/a"), "/home/ab/x");
        assert_eq!(without_home("/usr/lib/x", "/"), "/usr/lib/x");
        assert_eq!(without_home("/usr/lib/x", ""), "/usr/lib/x");
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        assert_eq!(os_name("ID=x\n"), UNKNOWN);
        assert_eq!(cpu(""), UNKNOWN);
        assert_eq!(memory("MemTotal: lots"), UNKNOWN);
        assert_eq!(page_bytes(&[1, 2, 3]), UNKNOWN);
        assert_eq!(libc_version("garbage"), UNKNOWN);
        assert_eq!(known(line("/does/not/exist")), UNKNOWN);
    }

    #[test]
    fn facts_are_found_in_the_files_that_have_them() {
        assert_eq!(os_name("ID=x\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"), "Debian GNU/Linux 12");
        assert_eq!(
            cpu("processor\t: 0\nmodel name\t: A B\n\nprocessor\t: 1\nmodel name\t: A B\n"),
            "A B (2 processors)"
        );
        assert_eq!(
            cpu("processor: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"),
            "implementer 0x41 part 0xd0c (1 processors)"
        );
        assert_eq!(memory("MemTotal:       2048 kB\n"), "2 MiB");
        let banner_text = banner(b"\0\0GNU C Library (X 2.36) stable release version 2.36.\nCopyright");
        assert_eq!(banner_text.as_deref(), Some("GNU C Library (X 2.36) stable release version 2.36"));
    }
}

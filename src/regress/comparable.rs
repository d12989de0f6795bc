//! Is what answered what the file names? A pass on another library, core type or kernel says nothing about a finding; a
//! pass on another version of the same library is what "fixed" means.

use crate::finding::Environment;
use crate::finding::environment::UNKNOWN;
use crate::finding::name::library_stem;
use crate::target::cblas::NO_BRAND;

/// What a target says of itself that has to be equal, by the name it has in the environment and the one for people.
const NAME: (&str, &str) = ("name", "library");
const CORE: (&str, &str) = ("core", "core type");
const KERNEL: (&str, &str) = ("kernel", "kernel");
const WIDTH: (&str, &str) = ("int width", "width of the integers");
const FILES: [&str; 2] = ["library soname", "library"];
/// What may change: the same library in another version or build.
const VERSIONS: [&str; 2] = ["version", "library build id"];

/// Why a pass here would say nothing about a finding made there, a fragment of a sentence each; empty where the two can be
/// compared.
pub fn differences(filed: &Environment, now: &Environment) -> Vec<String> {
    let mut out = vec![];
    let get = |e: &Environment, key: (&str, &str)| fact(e, key.0).to_owned();
    let mut differ = |what: &str, filed: &str, now: &str| {
        if filed != now {
            out.push(format!("the {what} is {now}, and {filed} in the file"));
        }
    };
    for key in [NAME, CORE, KERNEL] {
        differ(key.1, &get(filed, key), &get(now, key));
    }
    let bits = |e| get(e, WIDTH).split(' ').next().unwrap_or_default().to_owned();
    differ(WIDTH.1, &bits(filed), &bits(now));
    if get(now, NAME) == NO_BRAND {
        differ("library", file_stem(filed), file_stem(now));
    }
    // Nobody says which code answered: then it may depend on the processor.
    if [CORE, KERNEL].iter().all(|key| get(now, *key) == UNKNOWN) {
        differ("processor", model(&filed.cpu), model(&now.cpu));
    }
    out
}

/// What changed about the library without making it another one, for people: `version 0.3.29, 0.3.21 in the file`.
pub fn changes(filed: &Environment, now: &Environment) -> Vec<String> {
    let changed = VERSIONS.iter().find(|key| fact(filed, key) != fact(now, key));
    changed.map(|key| format!("{key} {}, {} in the file", fact(now, key), fact(filed, key))).into_iter().collect()
}

fn fact<'e>(environment: &'e Environment, key: &str) -> &'e str {
    environment.target.iter().find(|(name, _)| name == key).map_or(UNKNOWN, |(_, value)| value)
}

/// The file name of the library without its version, as the library gives it or as it lies on disk.
fn file_stem(environment: &Environment) -> &str {
    let known = FILES.iter().map(|key| fact(environment, key)).find(|file| *file != UNKNOWN);
    library_stem(known.unwrap_or(UNKNOWN))
}

/// The processor without how many there are.
fn model(cpu: &str) -> &str {
    cpu.rsplit_once(" (").map_or(cpu, |(model, _)| model)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(facts: &[(&str, &str)]) -> Environment {
        let target = facts.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        Environment { cpu: "A CPU (2 processors)".into(), target, ..Environment::default() }
    }

    const OPENBLAS: [(&str, &str); 4] = [
        ("name", "OpenBLAS"),
        ("version", "OpenBLAS 0.3.21"),
        ("core", "SkylakeX"),
        ("int width", "32 (observed: something)"),
    ];

    fn changed(key: &str, value: &'static str) -> Environment {
        environment(&OPENBLAS.map(|(n, v)| (n, if n == key { value } else { v })))
    }

    #[test]
    fn another_version_is_comparable_and_said() {
        let (filed, now) = (environment(&OPENBLAS), changed("version", "OpenBLAS 0.3.29"));
        assert_eq!(differences(&filed, &now), [""; 0]);
        assert_eq!(changes(&filed, &now), ["version OpenBLAS 0.3.29, OpenBLAS 0.3.21 in the file"]);
        assert!(changes(&filed, &filed).is_empty());
        let evidence = changed("int width", "32 (found in another way)");
        assert_eq!(differences(&filed, &evidence), [""; 0]);
    }

    #[test]
    fn another_core_type_library_or_width_is_not() {
        let filed = environment(&OPENBLAS);
        let core = changed("core", "Haswell");
        assert_eq!(differences(&filed, &core), ["the core type is Haswell, and SkylakeX in the file"]);
        assert_eq!(differences(&changed("core", UNKNOWN), &filed).len(), 1, "the file does not say");
        assert_eq!(differences(&filed, &changed("name", "BLIS")), ["the library is BLIS, and OpenBLAS in the file"]);
        assert_eq!(differences(&filed, &changed("int width", "64 (declared)")).len(), 1);
        let kernel = |k| environment(&[("name", "built-in model"), ("kernel", k)]);
        assert_eq!(differences(&kernel("64x64x16"), &kernel("64x64x8")).len(), 1);
        assert!(differences(&kernel("64x64x16"), &kernel("64x64x16")).is_empty());
    }

    #[test]
    fn libraries_that_do_not_name_themselves_are_told_apart_by_their_file() {
        let plain = |soname| environment(&[("name", NO_BRAND), ("library soname", soname)]);
        let difference = differences(&plain("libgslcblas.so.0"), &plain("libblas.so.3"));
        assert_eq!(difference, ["the library is libblas, and libgslcblas in the file"]);
        assert!(differences(&plain("libgslcblas.so.0"), &plain("libgslcblas.so.28")).is_empty());
        let on_disk = |path| environment(&[("name", NO_BRAND), ("library soname", UNKNOWN), ("library", path)]);
        assert!(differences(&on_disk("/a/libx.so.1"), &on_disk("/b/libx.so.2")).is_empty());
        assert_eq!(differences(&on_disk("/a/libx.so"), &on_disk("/a/liby.so")).len(), 1);
    }

    #[test]
    fn where_no_core_type_is_known_the_processor_has_to_be_the_same() {
        let filed = environment(&[("name", "MKL")]);
        let mut now = filed.clone();
        now.cpu = "A CPU (64 processors)".into();
        assert!(differences(&filed, &now).is_empty());
        now.cpu = "Another CPU (2 processors)".into();
        assert_eq!(differences(&filed, &now), ["the processor is Another CPU, and A CPU in the file"]);
        let mut core = environment(&OPENBLAS);
        core.cpu = "Another CPU (2 processors)".into();
        assert!(differences(&environment(&OPENBLAS), &core).is_empty());
    }
}

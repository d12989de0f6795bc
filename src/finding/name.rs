//! Short stable names: `atlas-gemm-b-read-far-3f9a1c`.
//!
//! The readable part comes from target, problem and signature; the digits are the first 24 bits of a SHA-256 over problem,
//! target, pins, minimal case, knobs, placement and signature. A library counts by the stem of its file name, so that
//! another version of it finds the same finding under the same name.

use super::facts::Facts;
use super::pins::Texts;
use super::words::{ACCESS, FAMILY, PLACE};
use crate::exec::{Family, Signature};
use crate::manifest;
use crate::problem::{Case, Problem};
use crate::target::TargetSpec;
use sha2::{Digest, Sha256};

/// Longest single part of a name.
const PART: usize = 32;

/// The file name of a library that may be given by its path.
pub fn library_file(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}

/// The file name without its ending and version: `libopenblas` of `/usr/lib/libopenblas-r0.3.26.so.0`.
pub fn library_stem(path: &str) -> &str {
    let file = library_file(path);
    let end = [".so", ".dylib", ".dll", ".a"].iter().filter_map(|e| file.find(e)).filter(|at| *at > 0).min();
    let stem = &file[..end.unwrap_or(file.len())];
    match stem.rsplit_once('-') {
        Some((front, version)) if !front.is_empty() && is_version(version) => front,
        _ => stem,
    }
}

/// Digits with at least one dot, an `r` or `v` in front: `0.3.26`, `r0.3`.
fn is_version(text: &str) -> bool {
    let digits = text.strip_prefix(['r', 'v']).unwrap_or(text);
    digits.contains('.') && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// Whether two targets are the same but for the version and place of the library.
pub fn same_target(a: &TargetSpec, b: &TargetSpec) -> bool {
    if a.family == manifest::FAMILY {
        // Its place and its digest change while it stays the same manifest.
        return a.family == b.family && a.model == b.model;
    }
    let stem = |t: &TargetSpec| t.library.as_deref().map(|l| library_stem(l).to_owned());
    a.family == b.family && a.model == b.model && a.settings == b.settings && stem(a) == stem(b)
}

/// Family and model, or the library without its `lib`: first part of a name, and the folder under regressions/.
pub fn group(target: &TargetSpec) -> String {
    let text = match &target.library {
        _ if target.family == manifest::FAMILY => target.model.clone(),
        Some(path) => {
            let stem = library_stem(path);
            stem.strip_prefix("lib").filter(|rest| !rest.is_empty()).unwrap_or(stem).to_owned()
        }
        None => target.family.clone(),
    };
    let part = part(&text);
    if part.is_empty() { part_or_family(target) } else { part }
}

fn part_or_family(target: &TargetSpec) -> String {
    let part = part(&target.family);
    if part.is_empty() { "target".to_owned() } else { part }
}

/// The name of a finding.
pub fn name(facts: &Facts) -> String {
    let mut parts = head_parts(&facts.problem.name, &facts.target);
    parts.extend(signature_parts(&facts.signature));
    let digest = Sha256::digest(identity(facts));
    let digits = format!("{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2]);
    parts.push(digits);
    parts.retain(|p| !p.is_empty());
    parts.join("-")
}

/// Library or family, model, problem; a manifest is its own problem.
fn head_parts(problem: &str, target: &TargetSpec) -> Vec<String> {
    match target.family.as_str() {
        manifest::FAMILY => vec![group(target)],
        _ => vec![group(target), part(&target.model), part(problem)],
    }
}

/// The name of a bad case that was not shrunk.
pub fn raw_name(problem: &Problem, target: &TargetSpec, case: &Case, signature: &Signature) -> String {
    let mut text = head(&problem.name, target);
    push_case(&mut text, problem, case);
    push_signature(&mut text, signature);
    let digest = Sha256::digest(text);
    let digits: String = digest[..6].iter().map(|b| format!("{b:02x}")).collect();
    let mut parts = head_parts(&problem.name, target);
    parts.push(digits);
    parts.retain(|p| !p.is_empty());
    parts.join("-")
}

/// Whether a text can be the name of a finding.
pub fn is_name(text: &str) -> bool {
    let ok = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.len() <= 240 && !text.starts_with('-') && text.chars().all(ok)
}

fn signature_parts(s: &Signature) -> Vec<String> {
    if s.family != Family::Memory {
        return vec![FAMILY.word(s.family)];
    }
    let known = [s.operand.as_deref().map(part), s.access.map(|a| ACCESS.word(a)), s.place.map(|p| PLACE.word(p))];
    let known: Vec<String> = known.into_iter().flatten().collect();
    if known.is_empty() { vec![FAMILY.word(s.family)] } else { known }
}

/// Lower-case letters and digits, everything else one dash.
fn part(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_lowercase() || c.is_ascii_digit() => out.push(c),
            _ if !out.is_empty() && !out.ends_with('-') => out.push('-'),
            _ => {}
        }
    }
    out.truncate(PART);
    out.trim_end_matches('-').to_owned()
}

/// What the finding is, a fact per line. Parameters at their plainest value are left out: a parameter that a problem gains
/// later does not rename findings.
fn identity(facts: &Facts) -> String {
    let mut text = head(&facts.problem.name, &facts.target);
    let texts = Texts::of(&facts.pins);
    let mut pins: Vec<String> = [texts.set, texts.range, texts.one_of, texts.require].concat();
    pins.sort();
    for pin in pins {
        text.push_str(&format!("pin {pin}\n"));
    }
    for case in facts.before(&facts.minimal).iter().chain([&facts.minimal]) {
        push_case(&mut text, &facts.problem, case);
    }
    push_signature(&mut text, &facts.signature);
    text
}

fn head(problem: &str, target: &TargetSpec) -> String {
    let mut target = target.clone();
    if target.family == manifest::FAMILY {
        (target.library, target.settings) = (None, Default::default());
    }
    let stem = target.library.take().map_or_else(String::new, |l| library_stem(&l).to_owned());
    format!("problem {problem}\ntarget {target}\nlibrary {stem}\n")
}

fn push_case(text: &mut String, problem: &Problem, case: &Case) {
    let values = &case.params;
    for (i, p) in problem.params.iter().enumerate() {
        if values[i] != p.least() && problem.is_active(i, &values.0) {
            text.push_str(&format!("param {}={}\n", p.name, p.show(values[i])));
        }
    }
    for (name, value) in &case.knobs {
        text.push_str(&format!("knob {name}={value}\n"));
    }
    text.push_str(&format!("placement {}\n", case.placement));
}

fn push_signature(text: &mut String, s: &Signature) {
    let access = s.access.map_or_else(String::new, |a| ACCESS.word(a));
    let place = s.place.map_or_else(String::new, |p| PLACE.word(p));
    let operand = s.operand.as_deref().unwrap_or_default();
    text.push_str(&format!("signature {} {operand} {access} {place}\n", FAMILY.word(s.family)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::testing::{atlas, facts};
    use crate::problem::Value;
    use proptest::prelude::*;

    #[test]
    fn a_library_counts_by_its_stem() {
        let stems = [
            ("/usr/lib/x86_64-linux-gnu/libcblas.so.3.10.3", "libcblas"),
            ("libopenblasp-r0.3.26.so", "libopenblasp"),
            ("libcublasLt.so.12", "libcublasLt"),
            ("libblas-64.so", "libblas-64"),
            ("libx.dylib", "libx"),
            (".so", ".so"),
            ("", ""),
        ];
        for (file, stem) in stems {
            assert_eq!(library_stem(file), stem, "{file}");
        }
    }

    #[test]
    fn the_name_says_target_problem_operand_access_and_place() {
        let name = name(&atlas());
        assert!(name.starts_with("atlas-gemm-b-read-far-"), "{name}");
        assert_eq!(name.len(), "atlas-gemm-b-read-far-".len() + 6);
    }

    #[test]
    fn version_environment_and_seed_do_not_rename_a_finding_but_a_knob_does() {
        let base = atlas();
        let mut other = base.clone();
        other.target.library = Some("/opt/lib/libatlas.so.99".into());
        other.seed += 1;
        other.environment.cpu = "another".into();
        assert_eq!(name(&other), name(&base));
        other.minimal.knobs.insert("threads".into(), Value::Int(2));
        assert_ne!(name(&other), name(&base));
    }

    #[test]
    fn a_manifest_counts_by_its_name_alone() {
        let target = |text: &str| text.parse::<TargetSpec>().unwrap();
        let filed = target("manifest:toy,sha256=0123456789abcdef@scripts/toy.toml");
        let moved = target("manifest:toy,sha256=fedcba9876543210@/elsewhere/other.toml");
        assert!(same_target(&filed, &moved));
        assert!(!same_target(&filed, &target("manifest:toys,sha256=0123456789abcdef@scripts/toy.toml")));
        assert_eq!(group(&filed), "toy");
        let named = |target: &TargetSpec| name(&Facts { target: target.clone(), ..atlas() });
        assert_eq!(named(&filed), named(&moved));
        assert!(named(&filed).starts_with("toy-b-read-far-"), "{}", named(&filed));
    }

    proptest! {
        #[test]
        fn names_hold_lower_case_letters_digits_and_dashes_only(facts in facts(), family in "\\PC{0,40}") {
            prop_assert!(is_name(&name(&facts)));
            let mut facts = facts;
            facts.target.family = family;
            prop_assert!(is_name(&name(&facts)), "{}", name(&facts));
        }
    }
}

//! From the file's own types to facts. Every error is a sentence that names the place in the file.

use super::Catalog;
use super::check;
use super::encode::whole_elements;
use super::environment::Environment;
use super::facts::{Certified, Choice, Confirmation, Effect, Facts, Far, History, Ranks, Step, Tally, Witness};
use super::file::DIAGNOSIS;
use super::pins;
use super::stored::{self, Pairs};
use super::words::{ACCESS, FAMILY, KIND, PLACE};
use crate::exec::history::Earlier;
use crate::exec::{Fault, Hit, Signature, Verdict, Wrong};
use crate::problem::{Assignment, Case, Placement, Problem, Role, Value};
use crate::target::TargetSpec;
use std::sync::Arc;

pub fn facts(file: stored::File, catalog: &Catalog) -> Result<Facts, String> {
    let target: TargetSpec = file.target.parse()?;
    let described = catalog.describe(&file.problem, Some(&target))?;
    let change = described.manifest.and_then(|m| m.change_since(&target));
    facts_of(file, target, described.problem).map_err(|e| match change {
        Some(change) => format!("{e}; {change}"),
        None => e,
    })
}

fn facts_of(file: stored::File, target: TargetSpec, problem: Arc<Problem>) -> Result<Facts, String> {
    if file.diagnosis != DIAGNOSIS {
        return Err(format!("diagnosis = '{}' is not '{DIAGNOSIS}', the only one of this format", file.diagnosis));
    }
    let pins = pins::Texts { set: file.set, range: file.range, one_of: file.one_of, require: file.require }.pins()?;
    let minimal = case(&problem, &file.minimal).map_err(|e| format!("minimal: {e}"))?;
    let original = case(&problem, &file.original).map_err(|e| format!("original: {e}"))?;
    let history = file.history.map(|h| history(&problem, &minimal, h)).transpose();
    let evidence = Evidence { fault: file.fault, wrong: file.wrong, hang: file.hang, crash: file.crash };
    let choices = file.choices.tried.into_iter().map(|c| choice(&problem, c)).collect::<Result<_, _>>();
    let irrelevant = file.irrelevant.0.iter().map(|(name, n)| Ok((index(&problem, name)?, *n)));
    check::checked(Facts {
        target,
        pins,
        profile: file.profile,
        seed: file.seed.0,
        verdict: verdict(&problem, &minimal, &file.verdict, evidence)?,
        signature: signature(file.signature).map_err(|e| format!("signature: {e}"))?,
        original,
        history: history.map_err(|e| format!("history: {e}"))?,
        witnesses: file.witness.into_iter().map(|w| witness(&problem, w)).collect::<Result<_, _>>()?,
        far: file.far.map(|f| far(&problem, &minimal, f)).transpose().map_err(|e| format!("far: {e}"))?,
        choices: choices.map_err(|e| format!("choices: {e}"))?,
        irrelevant: irrelevant.collect::<Result<_, String>>().map_err(|e| format!("irrelevant: {e}"))?,
        windows: file.shrinking.windows,
        ranks: file.ranks.map(|r| Ranks { failing: r.failing, passing: r.passing, not_run: r.not_run, copy: r.copy }),
        confirmation: Confirmation {
            bad: tally(file.confirmation.bad),
            good: tally(file.confirmation.good),
            rate: file.confirmation.failure_rate,
        },
        slips: file.shrinking.slips,
        ladder: file.shrinking.ladder.into_iter().map(|s| Step { by: s.by, case: s.case }).collect(),
        environment: environment(file.environment),
        minimal,
        problem,
    })
}

fn index(problem: &Problem, name: &str) -> Result<usize, String> {
    problem.param(name).ok_or_else(|| {
        let known: Vec<&str> = problem.params.iter().map(|p| p.name.as_str()).collect();
        format!("{} has no parameter '{name}'; it has {}", problem.name, known.join(", "))
    })
}

fn case(problem: &Problem, case: &stored::Case) -> Result<Case, String> {
    Ok(Case {
        params: params(problem, &case.params)?,
        knobs: case.knobs.0.iter().cloned().collect(),
        placement: case.placement.parse::<Placement>()?,
    })
}

/// Of a case of the list that is the minimal one, both are written; they have to agree.
fn history(problem: &Problem, minimal: &Case, h: stored::History) -> Result<History, String> {
    let earlier = |e: stored::Earlier| {
        let stored = stored::Case { placement: e.placement, params: e.params, knobs: e.knobs };
        let case = case(problem, &stored)?;
        match e.is_minimal {
            false => Ok(Earlier::Case(case)),
            true if check::filed(problem, &case) == check::filed(problem, minimal) => Ok(Earlier::Same),
            true => Err("a case with is_minimal = true is not the minimal case".to_owned()),
        }
    };
    let before = h.before.into_iter().map(earlier).collect::<Result<_, String>>()?;
    Ok(History { before, found_after: h.found_after, alone: tally(h.alone) })
}

/// A size, stride or number of ranks that has a meaning must be there. Any other parameter may be absent and takes its
/// plainest value, so that files outlive features that a problem gains.
fn params(problem: &Problem, named: &Pairs<Value>) -> Result<Assignment, String> {
    let mut values = Assignment(problem.params.iter().map(|p| p.least()).collect());
    for (name, value) in &named.0 {
        let i = index(problem, name)?;
        values[i] = problem.params[i].store(value)?;
    }
    for (i, p) in problem.params.iter().enumerate() {
        let needed = !p.is_choice() && matches!(p.role, Role::Size | Role::Stride | Role::Ranks);
        if needed && problem.is_active(i, &values.0) && !named.0.iter().any(|(name, _)| *name == p.name) {
            return Err(format!("the parameter {} is missing", p.name));
        }
    }
    problem.check(&values).map_err(|e| e.to_string())?;
    Ok(values)
}

struct Evidence {
    fault: Option<stored::Fault>,
    wrong: Option<stored::Wrong>,
    hang: Option<stored::Hang>,
    crash: Option<stored::Crash>,
}

/// The verdict; exactly the table that carries its name must be there.
fn verdict(problem: &Problem, minimal: &Case, word: &str, evidence: Evidence) -> Result<Verdict, String> {
    let verdict = match (word, evidence) {
        ("fault", Evidence { fault: Some(f), wrong: None, hang: None, crash: None }) => {
            Verdict::Fault(fault(problem, minimal, f).map_err(|e| format!("fault: {e}"))?)
        }
        ("wrong", Evidence { fault: None, wrong: Some(w), hang: None, crash: None }) => {
            Verdict::Wrong(wrong(problem, minimal, w).map_err(|e| format!("wrong: {e}"))?)
        }
        ("hang", Evidence { fault: None, wrong: None, hang: Some(h), crash: None }) => {
            Verdict::Hang { after_ms: h.after_ms.0 }
        }
        ("crash", Evidence { fault: None, wrong: None, hang: None, crash: Some(c) }) => {
            Verdict::Crash { how: c.how, code: c.code }
        }
        ("fault" | "wrong" | "hang" | "crash", _) => {
            return Err(format!("verdict = '{word}' needs the table [{word}] and none of the other verdicts"));
        }
        _ => return Err(format!("verdict = '{word}' is not one of fault, wrong, hang, crash")),
    };
    Ok(verdict)
}

fn fault(problem: &Problem, minimal: &Case, f: stored::Fault) -> Result<Fault, String> {
    let address = f.address.map(|text| {
        let digits = text.strip_prefix("0x").ok_or(());
        digits
            .and_then(|d| u64::from_str_radix(d, 16).map_err(drop))
            .map_err(|()| format!("address = '{text}' should read 0x and up to 16 hexadecimal digits"))
    });
    Ok(Fault {
        address: address.transpose()?,
        page: f.page_bytes.map(u64::from),
        access: f.access.map(|a| ACCESS.value(&a)).transpose()?,
        hit: f.hit.map(|h| hit(problem, minimal, h)).transpose()?,
        code: f.code,
        channel: f.channel,
    })
}

fn wrong(problem: &Problem, minimal: &Case, w: stored::Wrong) -> Result<Wrong, String> {
    Ok(Wrong {
        kind: KIND.value(&w.kind)?,
        operand: w.operand,
        copy: w.copy,
        first: w.first,
        count: w.count.0,
        compared: w.compared.0,
        hit: w.hit.map(|h| hit(problem, minimal, h)).transpose()?,
    })
}

/// The hit; distances in elements repeat those in bytes and must agree with them.
fn hit(problem: &Problem, minimal: &Case, h: stored::Hit) -> Result<Hit, String> {
    let pairs = [
        ("from_base", h.from_base_bytes, h.from_base_elements),
        ("from_edge", h.from_edge_bytes, h.from_edge_elements),
    ];
    for (name, bytes, elements) in pairs {
        if elements.is_some() && elements != whole_elements(problem, &minimal.params, &h.operand, bytes) {
            return Err(format!("{name}_elements is not {name}_bytes in elements of {}", h.operand));
        }
    }
    Ok(Hit {
        place: PLACE.value(&h.place)?,
        operand: h.operand,
        copy: h.copy,
        from_base: h.from_base_bytes,
        from_edge: h.from_edge_bytes,
    })
}

fn signature(s: stored::Signature) -> Result<Signature, String> {
    Ok(Signature {
        operand: s.operand,
        access: s.access.map(|a| ACCESS.value(&a)).transpose()?,
        place: s.place.map(|p| PLACE.value(&p)).transpose()?,
        family: FAMILY.value(&s.family)?,
    })
}

fn tally(t: stored::Tally) -> Tally {
    Tally { runs: t.runs, failed: t.failed }
}

fn witness(problem: &Problem, w: stored::Witness) -> Result<Witness, String> {
    let of = |e: String| format!("witness of {}: {e}", w.param);
    let param = index(problem, &w.param).map_err(|e| format!("witness: {e}"))?;
    let p = &problem.params[param];
    let side = |s: &stored::Side| -> Result<(i64, Tally), String> {
        Ok((p.store(&s.value).map_err(of)?, Tally { runs: s.runs, failed: s.failed }))
    };
    let certified = match (w.certified, w.steps, &w.why_not) {
        (true, Some(steps), None) => Certified::Yes { steps },
        (false, None, Some(why)) => Certified::No(why.clone()),
        (true, ..) => return Err(of("certified = true goes with steps and without why_not".to_owned())),
        (false, ..) => return Err(of("certified = false goes with why_not and without steps".to_owned())),
    };
    Ok(Witness { param, good: w.last_good.as_ref().map(side).transpose()?, bad: side(&w.first_bad)?, certified })
}

fn choice(problem: &Problem, c: stored::Choice) -> Result<Choice, String> {
    let param = index(problem, &c.param)?;
    let effect = match (c.effect.as_str(), c.detail) {
        ("passes", None) => Effect::Passes,
        ("same", None) => Effect::Same,
        ("differs", Some(how)) => Effect::Differs(how),
        ("not-run", Some(why)) => Effect::NotRun(why),
        ("passes" | "same", Some(_)) => return Err(format!("{} has no detail", c.effect)),
        ("differs" | "not-run", None) => return Err(format!("{} needs a detail", c.effect)),
        _ => return Err(format!("effect = '{}' is not one of passes, same, differs, not-run", c.effect)),
    };
    Ok(Choice { param, value: problem.params[param].store(&c.value)?, effect })
}

fn far(problem: &Problem, minimal: &Case, f: stored::Far) -> Result<Far, String> {
    let mut params = minimal.params.clone();
    for (name, value) in &f.changed.0 {
        let i = index(problem, name)?;
        params[i] = problem.params[i].store(value)?;
    }
    Ok(Far { params, tally: Tally { runs: f.runs, failed: f.failed } })
}

fn environment(e: stored::Environment) -> Environment {
    Environment {
        shrinkfault: e.shrinkfault,
        os: e.os,
        kernel: e.kernel,
        cpu: e.cpu,
        memory: e.memory,
        page: e.page,
        libc: e.libc,
        device: e.device,
        target: e.target.0,
    }
}

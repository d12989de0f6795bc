//! Facts that contradict themselves never become a finding, whether they come from a run or from a file.

use super::facts::{Certified, Facts, History, Ranks, Tally, Witness};
use super::pins;
use crate::exec::history::Earlier;
use crate::exec::{Signature, Verdict};
use crate::problem::{Assignment, Case, Narrow, Problem};

/// Profiles there are.
const PROFILES: [&str; 2] = ["strided", "packed"];

/// Puts facts in their filed form and holds them against each other.
///
/// # Errors
/// A sentence about the first contradiction.
pub fn checked(mut facts: Facts) -> Result<Facts, String> {
    let problem = facts.problem.clone();
    facts.pins = pins::canonical(&problem, &facts.pins)?;
    if !PROFILES.contains(&facts.profile.as_str()) {
        return Err(format!("profile = '{}' is not one of {}", facts.profile, PROFILES.join(", ")));
    }
    let placed = [("minimal", &mut facts.minimal), ("original", &mut facts.original)];
    let earlier = facts.history.iter_mut().flat_map(|h| &mut h.before).filter_map(|e| match e {
        Earlier::Same => None,
        Earlier::Case(case) => Some(("history", case)),
    });
    for (name, case) in placed.into_iter().chain(earlier) {
        valid(&problem, &mut case.params).map_err(|e| format!("{name}: {e}"))?;
    }
    if let Some(far) = &mut facts.far {
        valid(&problem, &mut far.params).map_err(|e| format!("far: {e}"))?;
        tally(far.tally, "far")?;
        if far.tally.failed == 0 || far.params == facts.minimal.params {
            return Err("far: it must be another case than the minimal one, and one that failed".to_owned());
        }
    }
    satisfied(&problem, &facts.pins, &facts.minimal)?;
    verdict(&problem, &facts.verdict, &facts.signature)?;
    witnesses(&facts)?;
    facts.witnesses.sort_by_key(|w| w.param);
    irrelevant(&facts)?;
    facts.irrelevant.sort_unstable();
    choices(&facts)?;
    facts.choices.sort_by_key(|c| (c.param, c.value));
    confirmation(&facts)?;
    facts.history.as_ref().map_or(Ok(()), |h| history(h, facts.confirmation.bad))?;
    facts.ranks.as_ref().map_or(Ok(()), ranks)?;
    Ok(facts)
}

/// Gives parameters without a meaning in the case their plainest value: two cases that differ in them only are one case.
pub fn plain_where_inactive(problem: &Problem, values: &mut Assignment) {
    // A parameter may be switched off by one that is itself switched off.
    for _ in 0..problem.params.len() {
        let mut changed = false;
        for (i, p) in problem.params.iter().enumerate() {
            if values[i] != p.least() && !problem.is_active(i, &values.0) {
                values[i] = p.least();
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
}

/// The case in its filed form.
pub fn filed(problem: &Problem, case: &Case) -> Case {
    let mut params = case.params.clone();
    plain_where_inactive(problem, &mut params);
    case.with_params(params)
}

fn valid(problem: &Problem, values: &mut Assignment) -> Result<(), String> {
    if values.0.len() != problem.params.len() {
        let (have, want) = (values.0.len(), problem.params.len());
        return Err(format!("{have} values for the {want} parameters of {}", problem.name));
    }
    if let Some(i) = (0..values.0.len()).find(|i| !problem.params[*i].allows(values[*i])) {
        let p = &problem.params[i];
        let shown = p.show(values[i]);
        return Err(p.store(&shown).err().unwrap_or_else(|| format!("{} cannot be {shown}", p.name)));
    }
    plain_where_inactive(problem, values);
    problem.check(values).map_err(|e| e.to_string())
}

fn satisfied(problem: &Problem, pins: &[Narrow], minimal: &Case) -> Result<(), String> {
    let narrowed = problem.narrowed(pins)?;
    let values = &minimal.params;
    for (i, p) in narrowed.params.iter().enumerate() {
        if narrowed.is_active(i, &values.0) && !p.allows(values[i]) {
            return Err(format!("minimal: {} = {} is not what the pins allow", p.name, p.show(values[i])));
        }
    }
    for constraint in &narrowed.constraints {
        if narrowed.holds(&constraint.condition, &values.0) != Ok(true) {
            return Err(format!("minimal: the pin {} does not hold", constraint.condition.text()));
        }
    }
    Ok(())
}

fn verdict(problem: &Problem, verdict: &Verdict, signature: &Signature) -> Result<(), String> {
    let Some(own) = Signature::of(verdict) else {
        return Err(format!("the verdict '{}' is no failure", verdict.word()));
    };
    let seen = match verdict {
        Verdict::Wrong(w) if !w.operand.is_empty() => Some(&w.operand),
        _ => None,
    };
    for name in [own.operand.as_ref(), signature.operand.as_ref(), seen].into_iter().flatten() {
        if problem.operand(name).is_none() {
            let known: Vec<&str> = problem.operands.iter().map(|o| o.name.as_str()).collect();
            return Err(format!("{} has no operand '{name}'; it has {}", problem.name, known.join(", ")));
        }
    }
    if own.matches(signature) { Ok(()) } else { Err(format!("the signature says '{signature}', the verdict '{own}'")) }
}

fn tally(tally: Tally, of: &str) -> Result<(), String> {
    if tally.failed > tally.runs {
        return Err(format!("{of}: {} failures in {} runs", tally.failed, tally.runs));
    }
    Ok(())
}

fn witnesses(facts: &Facts) -> Result<(), String> {
    let (problem, narrowed) = (&facts.problem, facts.narrowed()?);
    for (n, w) in facts.witnesses.iter().enumerate() {
        let p = problem.params.get(w.param).ok_or_else(|| format!("no parameter has the index {}", w.param))?;
        let of = format!("witness of {}", p.name);
        if facts.witnesses[..n].iter().any(|other| other.param == w.param) {
            return Err(format!("{of}: there is another one"));
        }
        for (value, runs) in [w.good, Some(w.bad)].into_iter().flatten() {
            tally(runs, &of)?;
            if !p.allows(value) {
                return Err(format!("{of}: {} is none of its values", p.show(value)));
            }
            if at(&narrowed, &facts.minimal.params, w.param, value).is_none() {
                return Err(format!("{of}: there is no case with {}", p.show(value)));
            }
        }
        certified(w).map_err(|e| format!("{of}: {e}"))?;
    }
    Ok(())
}

fn certified(w: &Witness) -> Result<(), String> {
    match (&w.certified, &w.good) {
        (Certified::Yes { .. }, None) => Err("certified without a last good value".to_owned()),
        (Certified::Yes { .. }, Some((_, good))) if good.runs == 0 || good.failed > 0 || w.bad.1.failed == 0 => {
            Err("certified, but the good side must have run without a failure and the bad side must have failed"
                .to_owned())
        }
        (_, Some((good, _))) if *good == w.bad.0 => Err("the same value is last good and first bad".to_owned()),
        (Certified::Yes { steps }, Some((good, _))) if *steps == 0 || u64::from(*steps) > good.abs_diff(w.bad.0) => {
            Err(format!("{steps} steps do not lie between {good} and {}", w.bad.0))
        }
        _ => Ok(()),
    }
}

/// The case with one parameter changed: only strides that it forces along follow, and what loses its meaning is plain.
pub fn at(narrowed: &Problem, values: &Assignment, param: usize, value: i64) -> Option<Assignment> {
    let mut out = values.clone();
    out[param] = value;
    narrowed.follow(&out, |i| i == param)
}

fn irrelevant(facts: &Facts) -> Result<(), String> {
    for (n, (param, tried)) in facts.irrelevant.iter().enumerate() {
        let p = facts.problem.params.get(*param).ok_or_else(|| format!("no parameter has the index {param}"))?;
        if p.is_choice() || *tried == 0 {
            return Err(format!("irrelevant: {} is no integer of which another value was tried", p.name));
        }
        let twice = facts.irrelevant[..n].iter().any(|(other, _)| other == param);
        let matters = facts.witnesses.iter().any(|w| w.param == *param && matches!(w.certified, Certified::Yes { .. }));
        if twice || matters {
            let why = if twice { "is listed twice" } else { "has a certified witness" };
            return Err(format!("irrelevant: {} {why}", p.name));
        }
    }
    Ok(())
}

fn choices(facts: &Facts) -> Result<(), String> {
    for (n, c) in facts.choices.iter().enumerate() {
        let p = facts.problem.params.get(c.param).ok_or_else(|| format!("no parameter has the index {}", c.param))?;
        let twice = facts.choices[..n].iter().any(|other| (other.param, other.value) == (c.param, c.value));
        if !p.is_choice() || !p.allows(c.value) || c.value == facts.minimal.params[c.param] || twice {
            return Err(format!("choices: {} = {} is not another value of a choice", p.name, p.show(c.value)));
        }
    }
    Ok(())
}

fn confirmation(facts: &Facts) -> Result<(), String> {
    let c = &facts.confirmation;
    tally(c.bad, "confirmation")?;
    tally(c.good, "confirmation")?;
    if c.bad.runs > 0 && c.bad.failed == 0 {
        return Err(format!("confirmation: the minimal case failed in none of {} runs", c.bad.runs));
    }
    match c.rate {
        Some((low, high)) if !(0.0 <= low && low <= high && high <= 1.0) => {
            Err(format!("confirmation: {low} to {high} is no interval of a rate"))
        }
        _ => Ok(()),
    }
}

fn history(h: &History, confirmed: Tally) -> Result<(), String> {
    let fail = |what: String| Err(format!("history: {what}"));
    tally(h.alone, "history")?;
    if h.before.is_empty() {
        return fail("it lists no case to run before the minimal one".to_owned());
    }
    if h.before.len() > h.found_after as usize {
        return fail(format!("it lists {} cases, and the failure was found after {}", h.before.len(), h.found_after));
    }
    if h.alone.failed > 0 {
        return fail(format!("the minimal case failed {} times alone, so it needs none", h.alone.failed));
    }
    if h.alone.runs < confirmed.runs.max(1) {
        return fail(format!(
            "the minimal case ran {} times alone and {} times after it",
            h.alone.runs, confirmed.runs
        ));
    }
    Ok(())
}

fn ranks(ranks: &Ranks) -> Result<(), String> {
    let mut all: Vec<u32> = [&ranks.failing, &ranks.passing, &ranks.not_run].into_iter().flatten().copied().collect();
    all.sort_unstable();
    match all.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("ranks: {} is listed twice", pair[0])),
        None => Ok(()),
    }
}

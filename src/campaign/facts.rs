//! From the end of a shrink to what a finding states, and to what is read aloud.

use super::shown;
use crate::exec::blame::GapRule;
use crate::exec::history::{self, Earlier, resolved};
use crate::exec::pool::Pool;
use crate::exec::ranks::RankTable;
use crate::exec::verdict::{Fault, Hit, NEAR_BYTES, Place, Verdict, WrongKind};
use crate::exec::{ProbeError, Signature};
use crate::finding::{Certified, Choice, Confirmation, Effect, Environment, Facts, Far, Ranks, Step, Tally, Witness};
use crate::problem::{Case, Narrow, Problem};
use crate::report::event::{FindingSummary, WitnessLine};
use crate::shrink::{self, ChoiceEffect, Counts, Island, Shrunk, WitnessStatus};
use crate::target::TargetSpec;
use crate::target::load::call_text;
use bytesize::ByteSize;
use std::sync::Arc;

/// What a finding states beside the shrink itself.
#[derive(Debug, Clone)]
pub struct Context {
    /// As the problem describes itself, without limits and pins.
    pub problem: Arc<Problem>,
    pub target: TargetSpec,
    pub pins: Vec<Narrow>,
    pub profile: String,
    pub seed: u64,
    pub environment: Environment,
}

/// Value seeds under which a last good case is run again.
const OTHER_SEEDS: u64 = 2;

/// Runs every certified last good case, after what runs before it, under further value seeds: a pair whose good side fails under one is not certified.
///
/// # Errors
/// Where no verdict can be had any more; pairs that were not looked at keep their status.
pub fn other_seeds(
    pool: &Pool,
    before: &[Earlier],
    seed: u64,
    rule: GapRule,
    shrunk: &mut Shrunk,
) -> Result<(), ProbeError> {
    for witness in &mut shrunk.witnesses {
        let (Some(good), WitnessStatus::Certified { .. }) = (&witness.last_good, &witness.status) else { continue };
        for other in 1..=OTHER_SEEDS {
            let seed = seed.wrapping_add(other);
            let verdict = match before {
                [] => Some(pool.probe(&good.case, seed, false)?.verdict),
                list => history::run(pool, &resolved(list, &good.case), &good.case, seed, rule)?.map(|r| r.verdict),
            };
            if !verdict.as_ref().is_some_and(Verdict::is_pass) {
                let word = verdict.map_or("nothing", |v| v.word());
                witness.status = WitnessStatus::NotCertified(format!(
                    "the last good case answers {word} with operand values of seed {seed}"
                ));
                break;
            }
        }
    }
    Ok(())
}

/// What a finding states.
pub fn facts(context: &Context, original: &Case, s: &Shrunk, ranks: Option<&RankTable>) -> Facts {
    let problem = &context.problem;
    let good: Vec<Tally> = s.witnesses.iter().filter_map(|w| w.last_good.as_ref()).map(|g| tally(&g.counts)).collect();
    Facts {
        minimal: s.minimal.clone(),
        witnesses: s.witnesses.iter().map(|w| witness(problem, s, w)).collect(),
        far: s.far.as_ref().map(|(_, side)| Far { params: side.case.params.clone(), tally: tally(&side.counts) }),
        choices: s
            .choices
            .iter()
            .map(|c| Choice {
                param: c.param,
                value: c.value,
                effect: match &c.effect {
                    ChoiceEffect::Passes => Effect::Passes,
                    ChoiceEffect::Same => Effect::Same,
                    ChoiceEffect::FailsOtherwise(sig) => Effect::Differs(sig.to_string()),
                    ChoiceEffect::NotRun(why) => Effect::NotRun(why.clone()),
                },
            })
            .collect(),
        irrelevant: s.irrelevant.clone(),
        windows: s
            .islands
            .iter()
            .map(|i| island(problem, i))
            .chain(at_the_limit(&s.verdict))
            .chain(s.stopped.iter().map(stopped))
            .collect(),
        ranks: ranks.map(|t| Ranks {
            failing: t.failing.clone(),
            passing: t.passing.clone(),
            not_run: t.not_run.clone(),
            copy: hit(&s.verdict).map(|h| h.copy),
        }),
        confirmation: Confirmation {
            bad: tally(&s.confirmed),
            good: Tally { runs: good.iter().map(|t| t.runs).sum(), failed: good.iter().map(|t| t.failed).sum() },
            rate: s.rate.is_flaky().then_some((s.rate.low, s.rate.high)),
        },
        slips: s.slips.iter().map(|x| x.signature.to_string()).collect(),
        ladder: s.ladder.iter().map(|l| Step { by: l.by.to_owned(), case: problem.short(&l.case.params) }).collect(),
        ..base(context, original, &s.signature, s.verdict.clone())
    }
}

fn tally(c: &Counts) -> Tally {
    Tally { runs: c.runs, failed: c.bad }
}

/// A pair of cases as a finding states it, by one value for each side, everything else being that of the minimal case.
fn witness(problem: &Problem, s: &Shrunk, w: &shrink::Witness) -> Witness {
    let sides = [Some(&w.first_bad), w.last_good.as_ref()];
    let moved = |i: usize| {
        let elsewhere = |c: &Case| c.params[i] != s.minimal.params[i] && problem.is_active(i, &c.params.0);
        i != w.param && sides.iter().flatten().any(|side| elsewhere(&side.case))
    };
    let moved: Vec<&str> = (0..problem.params.len()).filter(|i| moved(*i)).map(|i| &*problem.params[i].name).collect();
    if !moved.is_empty() {
        let why = format!("no neighbour differs in this parameter alone: {} changes along", moved.join(", "));
        let bad = (s.minimal.params[w.param], tally(&s.confirmed));
        return Witness { param: w.param, good: None, bad, certified: Certified::No(why) };
    }
    Witness {
        param: w.param,
        good: w.last_good.as_ref().map(|g| (g.case.params[w.param], tally(&g.counts))),
        bad: (w.first_bad.case.params[w.param], tally(&w.first_bad.counts)),
        certified: match &w.status {
            WitnessStatus::Certified { steps, .. } => Certified::Yes { steps: *steps },
            WitnessStatus::NotCertified(why) => Certified::No(why.clone()),
        },
    }
}

/// What a finding states of a case that was not shrunk.
pub(super) fn base(context: &Context, case: &Case, signature: &Signature, verdict: Verdict) -> Facts {
    Facts {
        problem: Arc::clone(&context.problem),
        target: context.target.clone(),
        pins: context.pins.clone(),
        profile: context.profile.clone(),
        seed: context.seed,
        verdict,
        signature: signature.clone(),
        minimal: case.clone(),
        original: case.clone(),
        history: None,
        witnesses: vec![],
        far: None,
        choices: vec![],
        irrelevant: vec![],
        windows: vec![],
        ranks: None,
        confirmation: Confirmation::default(),
        slips: vec![],
        ladder: vec![],
        environment: context.environment.clone(),
    }
}

/// What the end of a run says aloud.
pub fn summary(problem: &Problem, facts: &Facts, s: &Shrunk) -> FindingSummary {
    let mut notes = vec![];
    if let Some(why) = &s.stopped {
        notes.push(format!(
            "shrinking ended early ({why}): smaller cases may fail too, and parameters are not certified"
        ));
    }
    let p = s.probes;
    let (passed, faulted, other, took) = (p.passed, p.faulted, p.other, s.took.as_secs_f64());
    let probes = format!("{passed} passed, {faulted} ended their process, {other} others, in {took:.1} s");
    summary_of(problem, facts, notes, probes)
}

/// What is read aloud of any finding, after the first notes; `probes` says what shrinking took.
pub(super) fn summary_of(problem: &Problem, facts: &Facts, first: Vec<String>, probes: String) -> FindingSummary {
    let witnesses = facts.witnesses.iter().map(|w| witness_line(problem, w)).collect();
    let mut notes = facts.windows.clone();
    notes.extend(first);
    for c in facts.choices.iter().filter(|c| c.effect == Effect::Passes) {
        let p = &problem.params[c.param];
        notes.push(format!("passes with {}={}", p.name, p.show(c.value)));
    }
    if let Some(r) = &facts.ranks {
        notes.push(format!("ranks that fail: {:?}; that pass: {:?}; not run: {:?}", r.failing, r.passing, r.not_run));
    }
    notes.extend(facts.slips.iter().map(|x| format!("met on the way, and kept in raw/ if it fails alone: {x}")));
    let t = facts.confirmation.bad;
    let rate = facts
        .confirmation
        .rate
        .map_or_else(String::new, |(low, high)| format!("; fails at a rate of {low:.2} to {high:.2} (95%)"));
    FindingSummary {
        title: facts.title(),
        minimal: shown(problem, &facts.minimal),
        call: call_text(&facts.target, problem, &facts.minimal),
        witnesses,
        evidence: evidence(&facts.verdict, element_bytes(problem, &facts.minimal, &facts.verdict)),
        before: facts.before(&facts.minimal).iter().map(|c| shown(problem, c)).collect(),
        confirmed: match (t.runs, &facts.history) {
            (0, _) => "not in fresh processes: shrinking ended before that".to_owned(),
            (_, None) => format!("{} of {} runs failed, each in a fresh process{rate}", t.failed, t.runs),
            (_, Some(h)) => format!(
                "after these cases {} of {} runs failed, alone {} of {}, each in a fresh process{rate}",
                t.failed, t.runs, h.alone.failed, h.alone.runs
            ),
        },
        irrelevant: irrelevant(problem, facts),
        notes,
        probes,
    }
}

/// `m k lda (2 to 3 other values of each)`, then the other values of choices that fail alike, those of one parameter together.
fn irrelevant(problem: &Problem, facts: &Facts) -> Vec<String> {
    let mut out = vec![];
    let tried = |pick: fn(u32, u32) -> u32| facts.irrelevant.iter().map(|(_, n)| *n).reduce(pick);
    if let (Some(least), Some(most)) = (tried(u32::min), tried(u32::max)) {
        let names: Vec<&str> = facts.irrelevant.iter().map(|(i, _)| problem.params[*i].name.as_str()).collect();
        let span = if least == most { least.to_string() } else { format!("{least} to {most}") };
        out.push(format!("{} ({span} other values of each fail alike)", names.join(" ")));
    }
    for (i, p) in problem.params.iter().enumerate() {
        let same = facts.choices.iter().filter(|c| c.param == i && c.effect == Effect::Same);
        let values: Vec<String> = same.map(|c| p.show(c.value).to_string()).collect();
        if !values.is_empty() {
            out.push(format!("{}={}", p.name, values.join("|")));
        }
    }
    out
}

fn witness_line(problem: &Problem, w: &Witness) -> WitnessLine {
    let p = &problem.params[w.param];
    let sides = |t: Tally, word: &str| {
        format!("{} of {} {word}", if word == "passed" { t.runs - t.failed } else { t.failed }, t.runs)
    };
    let note = match (&w.certified, &w.good) {
        (Certified::Yes { .. }, Some((value, good))) => {
            let above = if *value > w.bad.0 { "the failure ends above it; " } else { "" };
            format!("{above}{}, {}", sides(*good, "passed"), sides(w.bad.1, "failed"))
        }
        (Certified::Yes { .. }, None) => sides(w.bad.1, "failed"),
        (Certified::No(why), _) => format!("not certified: {why}"),
    };
    WitnessLine {
        param: p.name.clone(),
        good: match w.certified {
            Certified::Yes { .. } => w.good.as_ref().map(|g| p.show(g.0)),
            Certified::No(_) => None,
        },
        bad: p.show(w.bad.0),
        note,
    }
}

fn hit(verdict: &Verdict) -> Option<&Hit> {
    match verdict {
        Verdict::Fault(f) => f.hit.as_ref(),
        Verdict::Wrong(w) => w.hit.as_ref(),
        _ => None,
    }
}

/// Bytes of an element of the operand that the verdict names a place of.
pub fn element_bytes(problem: &Problem, case: &Case, verdict: &Verdict) -> Option<i64> {
    let operand = problem.operand(&hit(verdict)?.operand)?;
    Some(problem.element_bytes(operand, &case.params.0))
}

/// Where the access went, in words.
pub fn evidence(verdict: &Verdict, element: Option<i64>) -> Vec<String> {
    match verdict {
        Verdict::Fault(f) => fault(f, element),
        Verdict::Wrong(w) => {
            let mut out = vec![match w.kind {
                WrongKind::Value if w.first.is_empty() => format!("{} hold a wrong value", w.elements()),
                WrongKind::Value => format!("{} hold a wrong value, the first at index {:?}", w.elements(), w.first),
                WrongKind::Unwritten => {
                    format!("{} are wrong, the first, at index {:?}, was never written", w.elements(), w.first)
                }
                WrongKind::Stray => format!("{} bytes that are no output were changed, at {}", w.count, w.operand),
            }];
            out.extend(w.hit.as_ref().map(|h| place(h, element)));
            out
        }
        Verdict::Hang { after_ms } => vec![format!("no answer within {:.1} s", *after_ms as f64 / 1000.0)],
        Verdict::Crash { how, code } => {
            let mut out = vec![how.clone()];
            out.extend(code.clone());
            out
        }
        Verdict::Refused { detail } | Verdict::Skipped { detail, .. } => vec![detail.clone()],
        Verdict::Pass { sample: Some(s) } => vec![format!("ran {} of {} work-groups", s.groups, s.of)],
        Verdict::Pass { sample: None } => vec![],
    }
}

fn fault(f: &Fault, element: Option<i64>) -> Vec<String> {
    let access = f.access.map_or("access", |a| match a {
        crate::device::Access::Read => "read",
        crate::device::Access::Write => "write",
    });
    let address = f.address.map_or("an unknown address".to_owned(), |a| format!("{a:#x}"));
    let at = f.page.map_or("at".to_owned(), |page| format!("in the page of {page} bytes at"));
    let mut out = vec![format!("{access} {at} {address} ({})", f.channel)];
    let begins = if f.page.is_some() { "that page begins " } else { "" };
    out.extend(f.hit.as_ref().map(|h| format!("{begins}{}", place(h, element))));
    out.extend(f.code.as_ref().map(|c| format!("by {c}")));
    out
}

/// `8.0 GiB before B (-2147483648 elements from its base pointer)`.
fn place(h: &Hit, element: Option<i64>) -> String {
    let size = |bytes: i64| ByteSize::b(bytes.unsigned_abs()).to_string();
    let edge = match h.from_edge {
        0 if h.place == crate::exec::Place::PastEnd => format!("the first byte past the end of {}", h.operand),
        0 => format!("{} of {}", h.place, h.operand),
        d if d > 0 => format!("{} past the end of {}", size(d), h.operand),
        d => format!("{} before the start of {}", size(d), h.operand),
    };
    let copy = if h.copy > 0 { format!(" of rank {}", h.copy) } else { String::new() };
    let from = match element {
        Some(e) if e > 0 && h.from_base % e == 0 => format!("{} elements", h.from_base / e),
        _ => format!("{} bytes", h.from_base),
    };
    format!("{edge}{copy}, {from} from its base pointer")
}

/// Where shrinking ended at the limit between near and far, the line may be that of the limit.
fn at_the_limit(verdict: &Verdict) -> Option<String> {
    let hit = hit(verdict).filter(|h| matches!(h.place, Place::PastEnd | Place::BeforeStart))?;
    let close = hit.from_edge.abs() >= NEAR_BYTES - NEAR_BYTES / 16;
    close.then(|| {
        "the access lies at the 64 KiB up to which a place counts as near, and farther ones as another failure: the line may be \
         where the address comes that close, not where the target's arithmetic changes; look at the far finding, too"
            .to_owned()
    })
}

/// What a shrink that something ended leaves open.
fn stopped(why: &ProbeError) -> String {
    format!("shrinking ended early ({why}): the case may not be minimal, and witnesses may be missing")
}

/// Single values that were run: nothing is said of those between them.
fn island(problem: &Problem, island: &Island) -> String {
    let p = &problem.params[island.param];
    let again = island.bad_again.map_or_else(String::new, |v| format!(", {}={} fails again", p.name, p.show(v)));
    let from = p.show(island.from);
    format!(
        "not every larger {} fails: {}={from} passes{again}; what lies between these values was not all run",
        p.name, p.name
    )
}

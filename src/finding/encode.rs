//! From facts to the file's own types.

use super::facts::{Certified, Choice, Effect, Facts, History, Tally, Witness};
use super::file::{DIAGNOSIS, FORMAT, Status};
use super::pins;
use super::stored::{self, Number, Pairs};
use super::words::{ACCESS, FAMILY, KIND, PLACE};
use crate::exec::history::Earlier;
use crate::exec::{Hit, Signature, Verdict};
use crate::problem::{Assignment, Case, Problem, Value};
use crate::target::load::call_text;

pub fn file(status: Status, title: &str, facts: &Facts) -> stored::File {
    let problem = &facts.problem;
    let pins = pins::Texts::of(&facts.pins);
    let mut file = stored::File {
        format: FORMAT,
        title: title.to_owned(),
        status: status.word().to_owned(),
        problem: problem.name.clone(),
        target: facts.target.to_string(),
        call: call_text(&facts.target, problem, &facts.minimal),
        set: pins.set,
        range: pins.range,
        one_of: pins.one_of,
        require: pins.require,
        profile: facts.profile.clone(),
        seed: Number(facts.seed),
        verdict: facts.verdict.word().to_owned(),
        diagnosis: DIAGNOSIS.to_owned(),
        minimal: case(problem, &facts.minimal),
        fault: None,
        wrong: None,
        hang: None,
        crash: None,
        signature: signature(&facts.signature),
        confirmation: stored::Confirmation {
            bad: tally(facts.confirmation.bad),
            good: tally(facts.confirmation.good),
            failure_rate: facts.confirmation.rate,
        },
        history: facts.history.as_ref().map(|h| history(problem, &facts.minimal, h)),
        witness: facts.witnesses.iter().map(|w| witness(problem, w)).collect(),
        far: facts.far.as_ref().map(|far| stored::Far {
            changed: changed(problem, &facts.minimal.params, &far.params),
            runs: far.tally.runs,
            failed: far.tally.failed,
        }),
        choices: stored::Choices { tried: facts.choices.iter().map(|c| choice(problem, c)).collect() },
        irrelevant: Pairs(facts.irrelevant.iter().map(|(i, n)| (problem.params[*i].name.clone(), *n)).collect()),
        ranks: facts.ranks.clone().map(|r| stored::Ranks {
            failing: r.failing,
            passing: r.passing,
            not_run: r.not_run,
            copy: r.copy,
        }),
        shrinking: stored::Shrinking {
            ladder: facts.ladder.iter().map(|s| stored::Step { by: s.by.clone(), case: s.case.clone() }).collect(),
            windows: facts.windows.clone(),
            slips: facts.slips.clone(),
        },
        original: case(problem, &facts.original),
        environment: environment(facts),
    };
    evidence(problem, facts, &mut file);
    file
}

/// All parameters that have a meaning, in the order of the problem.
pub fn params(problem: &Problem, values: &Assignment) -> Pairs<Value> {
    let active = problem.params.iter().enumerate().filter(|(i, _)| problem.is_active(*i, &values.0));
    Pairs(active.map(|(i, p)| (p.name.clone(), p.show(values[i]))).collect())
}

pub fn case(problem: &Problem, case: &Case) -> stored::Case {
    stored::Case {
        placement: case.placement.to_string(),
        params: params(problem, &case.params),
        knobs: Pairs(case.knobs.clone().into_iter().collect()),
    }
}

fn history(problem: &Problem, minimal: &Case, history: &History) -> stored::History {
    let earlier = |e: &Earlier| {
        let (is_minimal, stored) = match e {
            Earlier::Same => (true, case(problem, minimal)),
            Earlier::Case(c) => (false, case(problem, c)),
        };
        stored::Earlier { is_minimal, placement: stored.placement, params: stored.params, knobs: stored.knobs }
    };
    stored::History {
        found_after: history.found_after,
        alone: tally(history.alone),
        before: history.before.iter().map(earlier).collect(),
    }
}

fn changed(problem: &Problem, from: &Assignment, to: &Assignment) -> Pairs<Value> {
    let differ = problem.params.iter().enumerate().filter(|(i, _)| from[*i] != to[*i]);
    Pairs(differ.map(|(i, p)| (p.name.clone(), p.show(to[i]))).collect())
}

fn evidence(problem: &Problem, facts: &Facts, file: &mut stored::File) {
    let values = &facts.minimal.params;
    match &facts.verdict {
        Verdict::Fault(f) => {
            file.fault = Some(stored::Fault {
                access: f.access.map(|a| ACCESS.word(a)),
                address: f.address.map(|a| format!("{a:#x}")),
                page_bytes: f.page.and_then(|p| u32::try_from(p).ok()),
                code: f.code.clone(),
                channel: f.channel.clone(),
                hit: f.hit.as_ref().map(|h| hit(problem, values, h)),
            });
        }
        Verdict::Wrong(w) => {
            file.wrong = Some(stored::Wrong {
                kind: KIND.word(w.kind),
                operand: w.operand.clone(),
                copy: w.copy,
                first: w.first.clone(),
                count: Number(w.count),
                compared: Number(w.compared),
                hit: w.hit.as_ref().map(|h| hit(problem, values, h)),
            });
        }
        Verdict::Hang { after_ms } => file.hang = Some(stored::Hang { after_ms: Number(*after_ms) }),
        Verdict::Crash { how, code } => file.crash = Some(stored::Crash { how: how.clone(), code: code.clone() }),
        Verdict::Pass { .. } | Verdict::Refused { .. } | Verdict::Skipped { .. } => {}
    }
}

fn hit(problem: &Problem, values: &Assignment, hit: &Hit) -> stored::Hit {
    let elements = |bytes| whole_elements(problem, values, &hit.operand, bytes);
    stored::Hit {
        operand: hit.operand.clone(),
        copy: hit.copy,
        place: PLACE.word(hit.place),
        from_base_bytes: hit.from_base,
        from_base_elements: elements(hit.from_base),
        from_edge_bytes: hit.from_edge,
        from_edge_elements: elements(hit.from_edge),
    }
}

/// A distance in elements of an operand, where it is a whole number of them.
pub fn whole_elements(problem: &Problem, values: &Assignment, operand: &str, bytes: i64) -> Option<i64> {
    let size = problem.element_bytes(problem.operand(operand)?, &values.0);
    (bytes % size == 0).then(|| bytes / size)
}

fn signature(signature: &Signature) -> stored::Signature {
    stored::Signature {
        family: FAMILY.word(signature.family),
        operand: signature.operand.clone(),
        access: signature.access.map(|a| ACCESS.word(a)),
        place: signature.place.map(|p| PLACE.word(p)),
    }
}

fn tally(tally: Tally) -> stored::Tally {
    stored::Tally { runs: tally.runs, failed: tally.failed }
}

fn witness(problem: &Problem, witness: &Witness) -> stored::Witness {
    let p = &problem.params[witness.param];
    let side =
        |(value, tally): (i64, Tally)| stored::Side { value: p.show(value), runs: tally.runs, failed: tally.failed };
    stored::Witness {
        param: p.name.clone(),
        last_good: witness.good.map(side),
        first_bad: side(witness.bad),
        certified: matches!(witness.certified, Certified::Yes { .. }),
        steps: match witness.certified {
            Certified::Yes { steps } => Some(steps),
            Certified::No(_) => None,
        },
        why_not: match &witness.certified {
            Certified::Yes { .. } => None,
            Certified::No(why) => Some(why.clone()),
        },
    }
}

fn choice(problem: &Problem, choice: &Choice) -> stored::Choice {
    let p = &problem.params[choice.param];
    let (effect, detail) = match &choice.effect {
        Effect::Passes => ("passes", None),
        Effect::Same => ("same", None),
        Effect::Differs(how) => ("differs", Some(how.clone())),
        Effect::NotRun(why) => ("not-run", Some(why.clone())),
    };
    stored::Choice { param: p.name.clone(), value: p.show(choice.value), effect: effect.to_owned(), detail }
}

fn environment(facts: &Facts) -> stored::Environment {
    let e = facts.environment.clone();
    stored::Environment {
        shrinkfault: e.shrinkfault,
        os: e.os,
        kernel: e.kernel,
        cpu: e.cpu,
        memory: e.memory,
        page: e.page,
        libc: e.libc,
        device: e.device,
        target: Pairs(e.target),
    }
}

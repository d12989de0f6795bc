//! Which operand an address belongs to, by the memory that the program said it placed.

use super::lines::Memory;
use crate::exec::verdict::{Hit, NEAR_BYTES};
use crate::problem::Instance;
use crate::worker::anchor::{Extremes, host};
use crate::worker::layout::relate;

/// An address far from all operands belongs to the nearest one only if every other is so many times as far: nothing is
/// known of the space that the program leaves between them.
const CLEARLY: u64 = 4;

/// What an address is to the memory of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Belongs {
    Operand(Hit),
    /// In, or next to, memory that is no operand.
    Scratch(String),
    /// The program placed nothing near, or several things are about as near.
    Unclear,
}

struct Candidate<'a> {
    distance: u64,
    /// Operand with memory of its own, and copy.
    operand: Option<(usize, u32)>,
    memory: &'a Memory,
}

/// Relates an address to what was placed. `rank`, where known, rules out the memory of other ranks.
pub fn locate(memory: &[Memory], instance: &Instance, address: u64, rank: Option<u32>) -> Belongs {
    let mut all: Vec<Candidate<'_>> = memory.iter().filter_map(|m| candidate(m, instance, address, rank)).collect();
    // Scratch may be a heap in which the operands lie.
    all.sort_by_key(|c| (c.distance, c.operand.is_none()));
    let Some(nearest) = all.first() else { return Belongs::Unclear };
    let far = nearest.distance > NEAR_BYTES as u64;
    let other = all.iter().find(|c| c.operand.is_none() || c.operand != nearest.operand).filter(|_| all.len() > 1);
    if far && other.is_some_and(|o| o.distance < nearest.distance.saturating_mul(CLEARLY)) {
        return Belongs::Unclear;
    }
    match nearest.operand {
        Some((operand, copy)) => {
            relate(instance, operand, copy, nearest.memory.base, address).map_or(Belongs::Unclear, Belongs::Operand)
        }
        None if far => Belongs::Unclear,
        None => Belongs::Scratch(nearest.memory.name.clone()),
    }
}

fn candidate<'a>(memory: &'a Memory, instance: &Instance, address: u64, rank: Option<u32>) -> Option<Candidate<'a>> {
    let declared = instance.problem.operand(&memory.name);
    let (operand, low, high) = match declared {
        Some(operand) => {
            let own = host(instance, operand);
            let view = instance.view(own)?;
            if memory.copy >= view.copies() || (view.copies() > 1 && rank.is_some_and(|r| r != memory.copy)) {
                return None;
            }
            let extremes = Extremes::of_copy(instance, own, memory.copy)?;
            (Some((own, memory.copy)), extremes.low, extremes.high)
        }
        None => (None, 0, i64::try_from(memory.bytes?).ok()?),
    };
    let from_base = i128::from(address) - i128::from(memory.base);
    let before = (i128::from(low) - from_base).max(0);
    let past = (from_base - i128::from(high) + 1).max(0);
    Some(Candidate { distance: u64::try_from(before.max(past)).unwrap_or(u64::MAX), operand, memory })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::Place;
    use crate::problem::{Builtin, Case, Placement, Value};

    /// m=4 n=3 k=5: A has 4 x 5 elements, B 5 x 3, C 4 x 3, of 4 bytes each, all packed.
    fn instance() -> Instance {
        let problem = Builtin::find("gemm").unwrap().problem();
        let named = [("m", 4), ("n", 3), ("k", 5)].map(|(n, v)| (n.to_owned(), Value::Int(v))).into();
        let params = problem.complete(&named).unwrap();
        problem.instance(Case { params, knobs: Default::default(), placement: Placement::END }).unwrap()
    }

    fn at(name: &str, base: u64, bytes: Option<u64>) -> Memory {
        Memory { name: name.into(), copy: 0, base, bytes }
    }

    const TIB: u64 = 1 << 40;

    #[test]
    fn a_near_address_belongs_to_its_operand_and_a_far_one_only_if_no_other_is_about_as_near() {
        let memory = [at("A", TIB, None), at("B", 2 * TIB, None)];
        let hit = |address| match locate(&memory, &instance(), address, None) {
            Belongs::Operand(hit) => Some((hit.operand, hit.place, hit.from_edge)),
            _ => None,
        };
        assert_eq!(hit(TIB + 80), Some(("A".into(), Place::PastEnd, 0)));
        assert_eq!(hit(TIB + 79), Some(("A".into(), Place::Element, 0)));
        assert_eq!(hit(2 * TIB - 4), Some(("B".into(), Place::BeforeStart, -4)));
        assert_eq!(hit(TIB - (8 << 30)).map(|h| h.1), Some(Place::Far));
        assert_eq!(hit(TIB + TIB / 2), None, "half-way between both");
        assert_eq!(locate(&[], &instance(), TIB, None), Belongs::Unclear);
    }

    #[test]
    fn scratch_is_no_operand_but_may_hold_one() {
        let memory = [at("A", TIB, None), at("workspace", TIB + 4096, Some(4096))];
        assert_eq!(locate(&memory, &instance(), TIB + 4100, None), Belongs::Scratch("workspace".into()));
        let heap = [at("heap", TIB, Some(1 << 30)), at("A", TIB + 4096, None)];
        assert!(matches!(locate(&heap, &instance(), TIB + 4096, None), Belongs::Operand(_)));
    }
}

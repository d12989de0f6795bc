//! Where the operands of many cases lie: one slot per operand and copy, with unmapped moats around it.
//!
//! Pure arithmetic on addresses. The worker places cases with it; the supervisor plans the same layout from the same
//! line to tie the address of a fault to an operand.

use super::anchor::{Anchor, Extremes, copies_in, host};
use crate::exec::protocol::ArenaSpan;
use crate::exec::verdict::{Hit, NEAR_BYTES, Place};
use crate::problem::Instance;

const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// Least unmapped space between two slots of a large arena. A 32-bit offset that wraps lands at most 2^32 units away:
/// 64 GiB for a unit of 16 bytes; twice that leaves half a moat for each neighbour.
pub const MIN_MOAT: u64 = 128 * GIB;
/// Largest moat: covers 40-bit fields in bytes.
pub const MAX_MOAT: u64 = 4 * TIB;
/// Least moat of an arena below [`LARGE_ARENA`].
pub const TINY_MOAT: u64 = GIB;
/// Arenas from this size on keep [`MIN_MOAT`]: 64 ranks with two operands each need 16.2 TiB of moats.
pub const LARGE_ARENA: u64 = 16 * TIB;
/// Least slot of a large arena, so that ordinary cases share addresses from layout to layout.
const COMMON_SLOT: u64 = GIB;

/// Why cases cannot be placed: answer "skipped".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error(
        "does not fit: operands of {needed} bytes with moats of {moat} bytes need more than the {len} bytes of addresses reserved"
    )]
    Addresses { needed: u128, moat: u64, len: u64 },
    #[error("no cases to place")]
    Empty,
}

/// Addresses set aside for one copy of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub operand: usize,
    pub copy: u32,
    pub start: u64,
    pub bytes: u64,
}

impl Slot {
    pub fn end(&self) -> u64 {
        self.start + self.bytes
    }
}

/// Slots of some cases, and the place of every operand in them.
///
/// In order of address: a moat, the slots of operands with one copy, each followed by a moat, then per rank the slots of
/// the operands that every rank has. So the distance of two operands of one rank is the same for all ranks, as in a
/// symmetric heap.
#[derive(Debug, Clone)]
pub struct Layout {
    page_bytes: u64,
    moat: u64,
    slots: Vec<Slot>,
    /// By operand: its slot of copy 0 and the number of slots; aliases name the slots they lie in.
    by_operand: Vec<Option<Shelf>>,
    /// By case, then by operand.
    anchors: Vec<Vec<Option<Anchor>>>,
}

#[derive(Debug, Clone, Copy)]
struct Shelf {
    start: u64,
    copies: u32,
    pitch: u64,
}

/// What one operand with memory of its own needs.
struct Need {
    operand: usize,
    copies: u32,
    ranked: bool,
    bytes: u64,
}

impl Layout {
    /// Plans slots and places for cases of one problem.
    ///
    /// # Errors
    /// Where the slots with the least moats are larger than the arena.
    pub fn plan(arena: &ArenaSpan, cases: &[&Instance]) -> Result<Layout, PlanError> {
        let first = cases.first().ok_or(PlanError::Empty)?;
        let page = arena.page_bytes;
        let extremes: Vec<Vec<Option<Extremes>>> = cases.iter().map(|c| Extremes::of(c)).collect();
        let mut needs = Vec::new();
        for (operand, declared) in first.problem.operands.iter().enumerate().filter(|(_, o)| o.alias.is_none()) {
            let mut need = Need { operand, copies: 0, ranked: declared.ranks.is_some(), bytes: 0 };
            for (case, extremes) in cases.iter().zip(&extremes) {
                let (Some(view), Some(extremes)) = (case.view(operand), extremes[operand]) else { continue };
                need.copies = need.copies.max(view.copies());
                need.bytes = need.bytes.max(extremes.room(case.case.placement, page));
            }
            if need.copies > 0 {
                needs.push(need);
            }
        }
        let ranks = needs.iter().filter(|n| n.ranked).map(|n| n.copies).max().unwrap_or(0);
        needs.iter_mut().filter(|n| n.ranked).for_each(|n| n.copies = ranks);
        let moat = size(arena, &mut needs)?;
        let (slots, by_operand) = shelve(arena.base + moat, moat, &needs, first);
        let anchors = cases
            .iter()
            .zip(&extremes)
            .map(|(case, extremes)| {
                let place = |(operand, e): (usize, &Option<Extremes>)| {
                    let bytes = needs.iter().find(|n| n.operand == operand)?.bytes;
                    Some(e.as_ref()?.anchor(case.case.placement, page, bytes))
                };
                let own: Vec<Option<Anchor>> = extremes.iter().enumerate().map(place).collect();
                (0..own.len()).map(|o| own[host(case, o)]).collect()
            })
            .collect();
        Ok(Layout { page_bytes: page, moat, slots, by_operand, anchors })
    }

    /// Unmapped bytes between neighbouring slots and at both ends. Less than [`MIN_MOAT`] in a small arena.
    pub fn moat_bytes(&self) -> u64 {
        self.moat
    }

    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// All slots, in order of address.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Address of element offset 0; an alias has that of the operand it lies in. 0 where the case lacks the operand.
    pub fn base(&self, case: usize, operand: usize, copy: u32) -> u64 {
        match (&self.by_operand[operand], &self.anchors[case][operand]) {
            (Some(shelf), Some(anchor)) => {
                shelf.start + shelf.pitch * u64::from(copy.min(shelf.copies - 1)) + anchor.base
            }
            _ => 0,
        }
    }

    /// Bytes between the operand (with its padding) and the unmapped page, left by the promised alignment: the blind
    /// spot of the guard.
    pub fn slack(&self, case: usize, operand: usize) -> u64 {
        self.anchors[case][operand].map_or(0, |a| a.slack)
    }

    /// The operand that an address belongs to: the slot it lies in, or the nearer one of the two beside its moat.
    /// `None` outside the layout, and where the case lacks the operand.
    pub fn locate(&self, case: usize, instance: &Instance, address: u64) -> Option<Hit> {
        let after = self.slots.partition_point(|s| s.start <= address);
        let slot = match (after.checked_sub(1).map(|i| &self.slots[i]), self.slots.get(after)) {
            (Some(below), _) if address < below.end() => below,
            (Some(below), Some(above)) => {
                if address - below.end() < above.start - address {
                    below
                } else {
                    above
                }
            }
            (Some(below), None) => below,
            (None, above) => above?,
        };
        if address < slot.start.saturating_sub(self.moat) || address >= slot.end() + self.moat {
            return None;
        }
        self.hit(case, instance, slot, address)
    }

    fn hit(&self, case: usize, instance: &Instance, slot: &Slot, address: u64) -> Option<Hit> {
        let view = instance.view(slot.operand)?;
        if slot.copy >= view.copies() {
            return None;
        }
        relate(instance, slot.operand, slot.copy, self.base(case, slot.operand, slot.copy), address)
    }
}

/// How an address lies to one copy of an operand with memory of its own, whose base pointer is `base`. `None` where the
/// case lacks it.
pub fn relate(instance: &Instance, operand: usize, copy: u32, base: u64, address: u64) -> Option<Hit> {
    let from_base = address.wrapping_sub(base) as i64;
    let extremes = Extremes::of_copy(instance, operand, copy)?;
    let (place, from_edge) = if from_base < extremes.low {
        let before = extremes.low.checked_sub(from_base)?;
        (if before <= NEAR_BYTES { Place::BeforeStart } else { Place::Far }, -before)
    } else if from_base >= extremes.high {
        let past = from_base.checked_sub(extremes.high)?;
        (if past < NEAR_BYTES { Place::PastEnd } else { Place::Far }, past)
    } else if is_element(instance, operand, copy, from_base) {
        (Place::Element, 0)
    } else {
        (Place::Gap, 0)
    };
    let operand = instance.problem.operands[operand].name.clone();
    Some(Hit { operand, copy, place, from_base, from_edge })
}

fn is_element(instance: &Instance, operand: usize, copy: u32, from_base: i64) -> bool {
    instance.views.iter().flatten().filter(|v| host(instance, v.operand) == operand).any(|v| {
        let element = from_base.div_euclid(v.element_bytes);
        copies_in(instance, v, copy).any(|c| v.contains(c, element))
    })
}

/// Least moat that cases are placed with in an arena of this size, bytes.
pub fn least_moat(arena_bytes: u64) -> u64 {
    if arena_bytes >= LARGE_ARENA { MIN_MOAT } else { TINY_MOAT }
}

/// Rounds the slots up and gives the moat that fits.
fn size(arena: &ArenaSpan, needs: &mut [Need]) -> Result<u64, PlanError> {
    let large = arena.len >= LARGE_ARENA;
    let least = least_moat(arena.len);
    let page = arena.page_bytes;
    let count: u128 = needs.iter().map(|n| u128::from(n.copies)).sum::<u128>() + 1;
    let total = |needs: &[Need]| needs.iter().map(|n| u128::from(n.bytes) * u128::from(n.copies)).sum::<u128>();
    let fits = |bytes: u128| bytes + count * u128::from(least) <= u128::from(arena.len);
    let exact: Vec<u64> = needs.iter().map(|n| n.bytes).collect();
    for need in needs.iter_mut() {
        let floor = if large { COMMON_SLOT } else { page };
        need.bytes = need.bytes.max(floor).next_power_of_two();
    }
    if !fits(total(needs)) {
        for (need, exact) in needs.iter_mut().zip(exact) {
            need.bytes = exact.next_multiple_of(page);
        }
    }
    let needed = total(needs);
    if !fits(needed) {
        return Err(PlanError::Addresses { needed, moat: least, len: arena.len });
    }
    let moat = ((u128::from(arena.len) - needed) / count).min(u128::from(MAX_MOAT)) as u64;
    // Four leading bits: small differences in the slots leave the moats, and with them the addresses, as they are.
    let grain = (moat.next_power_of_two() / 16).max(page);
    Ok((moat / grain * grain).max(least))
}

fn shelve(first: u64, moat: u64, needs: &[Need], instance: &Instance) -> (Vec<Slot>, Vec<Option<Shelf>>) {
    let operands = instance.problem.operands.len();
    let mut by_operand: Vec<Option<Shelf>> = vec![None; operands];
    let mut slots = Vec::new();
    let mut at = first;
    for need in needs.iter().filter(|n| !n.ranked) {
        by_operand[need.operand] = Some(Shelf { start: at, copies: need.copies, pitch: need.bytes + moat });
        for copy in 0..need.copies {
            slots.push(Slot { operand: need.operand, copy, start: at, bytes: need.bytes });
            at += need.bytes + moat;
        }
    }
    let ranks = needs.iter().filter(|n| n.ranked).map(|n| n.copies).max().unwrap_or(0);
    let pitch: u64 = needs.iter().filter(|n| n.ranked).map(|n| n.bytes + moat).sum();
    for rank in 0..ranks {
        for need in needs.iter().filter(|n| n.ranked) {
            if rank == 0 {
                by_operand[need.operand] = Some(Shelf { start: at, copies: need.copies, pitch });
            }
            slots.push(Slot { operand: need.operand, copy: rank, start: at, bytes: need.bytes });
            at += need.bytes + moat;
        }
    }
    let hosted: Vec<Option<Shelf>> = (0..operands).map(|o| by_operand[host(instance, o)]).collect();
    (slots, hosted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Builtin, Case, Placement, Value};
    use proptest::prelude::*;

    const PAGE: u64 = 4096;

    fn arena(len: u64) -> ArenaSpan {
        ArenaSpan { base: 0x7000_0000_0000 & !(PAGE - 1), len, page_bytes: PAGE }
    }

    fn instance(problem: &str, values: &[(&str, i64)], words: &[(&str, &str)], place: &str) -> Instance {
        let problem = Builtin::find(problem).unwrap().problem();
        let named = values.iter().map(|(n, v)| ((*n).to_owned(), Value::Int(*v)));
        let named = named.chain(words.iter().map(|(n, v)| ((*n).to_owned(), Value::from_word(v)))).collect();
        let params = problem.complete(&named).unwrap();
        let placement: Placement = place.parse().unwrap();
        problem.instance(Case { params, knobs: Default::default(), placement }).unwrap()
    }

    fn any_place() -> impl Strategy<Value = String> {
        (prop::sample::select(vec!["end", "start"]), 0u32..200, 0u32..13).prop_map(|(flush, pad, bits)| {
            Placement { pad, align: if bits == 0 { 0 } else { 1 << bits }, ..flush.parse().unwrap() }.to_string()
        })
    }

    prop_compose! {
        fn any_gemm()(m in 1i64..50, n in 1i64..50, k in 1i64..50, more in prop::array::uniform3(0i64..1 << 24),
            off in 0i64..1 << 20, batch in 1i64..4, trans in prop::bool::ANY, out in prop::bool::ANY,
            dtype in prop::sample::select(vec!["f32", "f64", "bf16"]), place in any_place()) -> Instance {
            let (a, b) = if trans { (k, n) } else { (m, k) };
            let word = if trans { "T" } else { "N" };
            instance("gemm", &[("m", m), ("n", n), ("k", k), ("lda", a + more[0]), ("ldb", b + more[1]),
                ("ldc", m + more[2]), ("batch", batch), ("offA", off), ("offC", off)],
                &[("transA", word), ("transB", word), ("out", if out { "D" } else { "C" }), ("dtype", dtype)], &place)
        }
    }

    prop_compose! {
        fn any_allgather()(ranks in 1i64..9, m in 1i64..40, n in 1i64..40, more in 0i64..1 << 22,
            inplace in prop::bool::ANY, place in any_place()) -> Instance {
            let stride: &[(&str, i64)] = &[("ranks", ranks), ("M", m), ("N", n), ("strideOut", n + more)];
            instance("allgather", stride, &[("inplace", if inplace { "true" } else { "false" })], &place)
        }
    }

    fn any_cases() -> impl Strategy<Value = Vec<Instance>> {
        prop_oneof![prop::collection::vec(any_gemm(), 1..4), prop::collection::vec(any_allgather(), 1..4)]
    }

    fn check_slots(layout: &Layout, arena: &ArenaSpan) {
        let mut free = arena.base;
        for slot in layout.slots() {
            assert!(slot.start >= free + layout.moat_bytes(), "{slot:x?}");
            assert_eq!((slot.start % PAGE, slot.bytes % PAGE), (0, 0));
            free = slot.end();
        }
        assert!(free + layout.moat_bytes() <= arena.base + arena.len);
    }

    fn check_flush(layout: &Layout, case: usize, i: &Instance) {
        let place = i.case.placement;
        for view in i.views.iter().flatten() {
            for copy in 0..view.copies() {
                let base = layout.base(case, view.operand, copy);
                let align = if place.align == 0 { view.element_bytes as u64 } else { u64::from(place.align) };
                assert_eq!(base % align, 0);
                let low = base.wrapping_add_signed(view.lowest(copy) * view.element_bytes);
                let high = base.wrapping_add_signed((view.highest(copy) + 1) * view.element_bytes);
                let slot =
                    layout.slots().iter().find(|s| s.operand == host(i, view.operand) && s.copy == copy).unwrap();
                assert!(slot.start <= low.min(base) && high.max(base) <= slot.end());
                if view.alias.is_some() {
                    continue;
                }
                let slack = layout.slack(case, view.operand);
                assert!(slack < align.max(view.element_bytes as u64));
                match place.flush {
                    crate::problem::Flush::End => assert_eq!((high + u64::from(place.pad) + slack) % PAGE, 0),
                    crate::problem::Flush::Start => assert_eq!((low - slack - u64::from(place.pad)) % PAGE, 0),
                }
            }
        }
    }

    proptest! {
        #[test]
        fn slots_keep_their_moats_and_operands_are_flush(cases in any_cases(), small in any::<bool>()) {
            let arena = arena(if small { 200 * GIB } else { 64 * TIB });
            let refs: Vec<&Instance> = cases.iter().collect();
            match Layout::plan(&arena, &refs) {
                Ok(layout) => {
                    let least = if small { TINY_MOAT } else { MIN_MOAT };
                    prop_assert!(layout.moat_bytes() >= least);
                    check_slots(&layout, &arena);
                    cases.iter().enumerate().for_each(|(c, i)| check_flush(&layout, c, i));
                }
                Err(e) => prop_assert!(small, "{}", e),
            }
        }

        #[test]
        fn ranks_are_symmetric(i in any_allgather()) {
            let layout = Layout::plan(&arena(64 * TIB), &[&i]).unwrap();
            let views: Vec<_> = i.views.iter().flatten().collect();
            for (a, b) in views.iter().zip(views.iter().skip(1)) {
                let apart = |r| layout.base(0, a.operand, r).wrapping_sub(layout.base(0, b.operand, r));
                prop_assert!((0..a.copies()).all(|r| apart(r) == apart(0)));
            }
        }

        #[test]
        fn an_address_is_tied_to_its_operand(i in any_gemm(), pick in any::<prop::sample::Index>(), bits in 0u32..40, from in any::<u64>()) {
            let layout = Layout::plan(&arena(64 * TIB), &[&i]).unwrap();
            let views: Vec<_> = i.views.iter().flatten().collect();
            let view = views[pick.index(views.len())];
            let base = layout.base(0, view.operand, 0);
            let (low, high) = (view.lowest(0) * view.element_bytes, (view.highest(0) + 1) * view.element_bytes);
            // From a little or a lot before the start to as much past the end.
            let around = (from % (((high - low) as u64) + (2 << bits))) as i64 + low - (1 << bits);
            let hit = layout.locate(0, &i, base.wrapping_add_signed(around)).unwrap();
            prop_assert_eq!(&hit.operand, &i.problem.operands[view.operand].name);
            prop_assert_eq!((hit.copy, hit.from_base), (0, around));
            let element = view.contains(0, around.div_euclid(view.element_bytes));
            let (place, edge) = match around {
                x if x < low - NEAR_BYTES => (Place::Far, x - low),
                x if x < low => (Place::BeforeStart, x - low),
                x if x >= high + NEAR_BYTES => (Place::Far, x - high),
                x if x >= high => (Place::PastEnd, x - high),
                _ if element => (Place::Element, 0),
                _ => (Place::Gap, 0),
            };
            prop_assert_eq!((hit.place, hit.from_edge), (place, edge));
        }
    }

    #[test]
    fn sixty_four_ranks_fit_sixty_four_tebibytes() {
        let values = [("ranks", 64), ("M", 4097), ("N", 8192)];
        let i = instance("allgather", &values, &[("dtype", "bf16")], "end");
        let layout = Layout::plan(&arena(64 * TIB), &[&i]).unwrap();
        assert_eq!(layout.slots().len(), 128);
        assert!(layout.moat_bytes() >= MIN_MOAT);
        check_slots(&layout, &arena(64 * TIB));
    }

    #[test]
    fn ordinary_cases_share_addresses_from_layout_to_layout() {
        let one = instance("gemm", &[("m", 5), ("n", 6), ("k", 7)], &[], "start");
        let other = instance("gemm", &[("m", 500), ("n", 60), ("k", 7), ("lda", 1 << 20)], &[], "start");
        let plan = |i: &Instance| Layout::plan(&arena(64 * TIB), &[i]).unwrap();
        for operand in 0..3 {
            assert_eq!(plan(&one).base(0, operand, 0), plan(&other).base(0, operand, 0));
        }
        assert_eq!(plan(&one).moat_bytes(), MAX_MOAT);
    }

    #[test]
    fn an_input_in_place_lies_in_its_block() {
        let i = instance("allgather", &[("ranks", 3), ("M", 2), ("N", 5)], &[("inplace", "true")], "end");
        let layout = Layout::plan(&arena(64 * TIB), &[&i]).unwrap();
        let (own, out) = (1, 2);
        for rank in 0..3 {
            assert_eq!(layout.base(0, own, rank), layout.base(0, out, rank));
        }
        assert_eq!(layout.locate(0, &i, layout.base(0, own, 2) + 12).unwrap().operand, "out");
    }

    #[test]
    fn what_does_not_fit_is_a_sentence() {
        let i = instance("gemm", &[("m", 2), ("k", 2), ("lda", 1 << 34)], &[("dtype", "f64")], "end");
        assert!(Layout::plan(&arena(8 * GIB), &[&i]).unwrap_err().to_string().contains("does not fit"));
        let twice = instance("gemm", &[("m", 1), ("k", 1 << 9), ("lda", 1 << 34)], &[("dtype", "f64")], "end");
        assert!(Layout::plan(&arena(64 * TIB), &[&twice]).is_err());
    }

    #[test]
    fn addresses_of_nobody_are_tied_to_nobody() {
        let i = instance("gemm", &[("m", 5)], &[], "end");
        let arena = arena(64 * TIB);
        let layout = Layout::plan(&arena, &[&i]).unwrap();
        for address in [0, 4096, arena.base - 1, arena.base + arena.len - 1, u64::MAX] {
            assert_eq!(layout.locate(0, &i, address), None, "{address:#x}");
        }
    }
}

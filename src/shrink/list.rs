//! The shortest part of a list that still fails, in its order: delta debugging by removal.

/// Removes from a list what it fails without: halves, quarters and so on down to single entries, from the front, until no
/// single entry can go. Never tries the empty list. What is left after an error is the shortest list that failed until then.
///
/// `fails` says whether a shorter list fails, too.
pub fn minimise<T: Clone, E>(mut list: Vec<T>, fails: &mut dyn FnMut(&[T]) -> Result<bool, E>) -> (Vec<T>, Option<E>) {
    let mut chunk = list.len().div_ceil(2);
    while chunk > 0 {
        let (mut at, mut removed) = (0, false);
        while at < list.len() && list.len() > 1 {
            let end = (at + chunk).min(list.len());
            let shorter: Vec<T> = list[..at].iter().chain(&list[end..]).cloned().collect();
            if shorter.is_empty() {
                break;
            }
            match fails(&shorter) {
                Ok(true) => (list, removed) = (shorter, true),
                Ok(false) => at = end,
                Err(e) => return (list, Some(e)),
            }
        }
        chunk = match chunk {
            // Once more: what could not go while another entry was there may be able to now.
            1 if removed => 1,
            1 => 0,
            more => more.min(list.len()).div_ceil(2),
        };
    }
    (list, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The shortest part of `0..n` found, and how many lists were tried.
    fn least(n: u32, fails: impl Fn(&[u32]) -> bool) -> (Vec<u32>, u32) {
        let mut tried = 0;
        let (list, error) = minimise((0..n).collect(), &mut |l: &[u32]| {
            tried += 1;
            Ok::<bool, ()>(fails(l))
        });
        assert_eq!(error, None);
        (list, tried)
    }

    #[test]
    fn one_entry_of_many_is_found_in_few_tries() {
        let (list, tried) = least(512, |l| l.contains(&300));
        assert_eq!(list, [300]);
        assert!(tried < 40, "{tried}");
    }

    #[test]
    fn a_number_of_entries_is_kept_whichever_they_are() {
        assert_eq!(least(100, |l| l.len() >= 7).0.len(), 7);
        assert_eq!(least(1, |_| true).0, [0]);
        assert_eq!(least(9, |_| true).0.len(), 1);
    }

    #[test]
    fn an_error_leaves_the_shortest_list_so_far() {
        let mut left = 3;
        let (list, error) = minimise((0..64).collect(), &mut |l: &[i32]| {
            left -= 1;
            if left == 0 { Err("spent") } else { Ok(l.contains(&5)) }
        });
        assert_eq!(error, Some("spent"));
        assert!(list.contains(&5) && list.len() < 64);
    }

    proptest! {
        #[test]
        fn what_is_left_fails_and_no_entry_of_it_can_go(
            n in 1u32..60, groups in prop::collection::vec(prop::collection::btree_set(0u32..60, 1..4), 1..4)
        ) {
            let fails = |l: &[u32]| groups.iter().any(|g| g.iter().all(|x| l.contains(&(x % n))));
            let (list, _) = least(n, fails);
            prop_assert!(fails(&list) && list.is_sorted());
            for gone in 0..list.len() {
                let mut shorter = list.clone();
                shorter.remove(gone);
                prop_assert!(shorter.is_empty() || !fails(&shorter), "{:?} fails without {}", list, list[gone]);
            }
        }
    }
}

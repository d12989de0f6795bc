//! The last bytes of a stream, in bounded memory.

/// Bytes that are kept.
const TAIL_BYTES: usize = 16 * 1024;

/// The last 16 KiB of everything pushed. No memory is taken before the first byte.
#[derive(Debug, Default)]
pub(super) struct Tail {
    /// Up to twice what is kept, so that old bytes are moved out rarely.
    bytes: Vec<u8>,
    total: u64,
}

impl Tail {
    pub(super) fn push(&mut self, new: &[u8]) {
        self.total += new.len() as u64;
        let new = &new[new.len().saturating_sub(TAIL_BYTES)..];
        if self.bytes.len() + new.len() > 2 * TAIL_BYTES {
            let stale = self.bytes.len().saturating_sub(TAIL_BYTES - new.len());
            self.bytes.drain(..stale);
        }
        self.bytes.extend_from_slice(new);
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.bytes.len().saturating_sub(TAIL_BYTES)..]
    }

    /// All bytes ever pushed.
    pub(super) fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_the_end_of_the_whole() {
        for step in [1, 7, 1000, TAIL_BYTES, TAIL_BYTES + 1, 3 * TAIL_BYTES] {
            let all: Vec<u8> = (0..5 * TAIL_BYTES).map(|i| (i % 251) as u8).collect();
            let mut tail = Tail::default();
            for (index, chunk) in all.chunks(step).enumerate() {
                tail.push(chunk);
                let end = (index * step + chunk.len()).min(all.len());
                assert_eq!(tail.total(), end as u64);
                assert_eq!(tail.bytes(), &all[end.saturating_sub(TAIL_BYTES)..end]);
                assert!(tail.bytes.len() <= 2 * TAIL_BYTES);
            }
        }
    }
}

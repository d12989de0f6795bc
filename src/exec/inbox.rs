//! Bytes that came in, cut into lines.

use std::io::{self, Read};

/// The longest line that is read, in bytes, without its line break.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// Bytes asked for in one read.
const READ_BYTES: usize = 64 * 1024;

/// A buffer that is reused: `start..end` holds what came in and was not taken.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// No line break lies before this index.
    scanned: usize,
    closed: bool,
}

impl Inbox {
    /// Appends the next line to `line`, without its line break; false if none is complete.
    pub(super) fn take_line(&mut self, line: &mut String) -> bool {
        let unseen = &self.buffer[self.scanned..self.end];
        let Some(found) = unseen.iter().position(|&byte| byte == b'\n') else {
            self.scanned = self.end;
            return false;
        };
        let stop = self.scanned + found;
        if stop - self.start > MAX_LINE_BYTES {
            return false;
        }
        let bytes = &self.buffer[self.start..stop];
        match std::str::from_utf8(bytes) {
            Ok(text) => line.push_str(text),
            Err(_) => line.push_str(&String::from_utf8_lossy(bytes)),
        }
        self.start = stop + 1;
        self.scanned = self.start;
        true
    }

    /// Whether the bytes after the last line taken are more than a line may have. Meaningful once
    /// [`Inbox::take_line`] found none.
    pub(super) fn is_too_long(&self) -> bool {
        self.end - self.start > MAX_LINE_BYTES
    }

    /// Whether more should be taken in while nobody takes lines out.
    pub(super) fn has_room(&self) -> bool {
        self.end - self.start < 4 * MAX_LINE_BYTES
    }

    /// One read; the end of the stream closes the inbox.
    pub(super) fn fill_from(&mut self, source: &mut impl Read) -> io::Result<()> {
        self.make_space();
        match source.read(&mut self.buffer[self.end..])? {
            0 => self.closed = true,
            bytes => self.end += bytes,
        }
        Ok(())
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Makes room for one read behind what is held, moving it to the front first.
    fn make_space(&mut self) {
        if self.start == self.end || self.buffer.len() - self.end < READ_BYTES {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.scanned -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < READ_BYTES {
            // Doubling, so that a long line is not copied once for every read.
            let bytes = (2 * self.buffer.len()).max(self.end + READ_BYTES);
            self.buffer.resize(bytes, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives out a text in pieces of a few bytes.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let bytes = self.1.min(self.0.len()).min(buffer.len());
            let (piece, rest) = self.0.split_at(bytes);
            buffer[..bytes].copy_from_slice(piece);
            self.0 = rest;
            Ok(bytes)
        }
    }

    #[test]
    fn lines_do_not_depend_on_how_the_bytes_came_in() {
        let mut text = String::new();
        for index in 0..3000 {
            text += &format!("line {index} {}\n", "y".repeat(index % 97));
        }
        for piece in [1, 3, 64, 5000, 1 << 20] {
            let mut source = Pieces(text.as_bytes(), piece);
            let mut inbox = Inbox::default();
            let (mut all, mut line) = (String::new(), String::new());
            while !inbox.is_closed() {
                inbox.fill_from(&mut source).unwrap();
                while inbox.take_line(&mut line) {
                    line.push('\n');
                    all += &line;
                    line.clear();
                }
            }
            assert_eq!(all, text);
            assert!(inbox.buffer.len() <= 4 * READ_BYTES);
        }
    }

    #[test]
    fn a_line_of_the_longest_length_is_taken_and_one_byte_more_is_not() {
        for (bytes, fits) in [(MAX_LINE_BYTES, true), (MAX_LINE_BYTES + 1, false)] {
            let mut text = vec![b'x'; bytes];
            text.extend_from_slice(b"\nnext\n");
            let mut source = Pieces(&text, usize::MAX);
            let mut inbox = Inbox::default();
            while !inbox.is_closed() {
                inbox.fill_from(&mut source).unwrap();
            }
            assert_eq!(inbox.take_line(&mut String::new()), fits);
            assert_eq!(inbox.is_too_long(), !fits);
        }
    }
}

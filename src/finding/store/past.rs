//! Reading the last hunt of a journal again, up to the first line that was not written whole.

use super::record::{Record, Start};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// How the line of a hunt's beginning begins, whatever wrote it.
const START: &[u8] = br#"{"event":"start""#;

/// The last hunt of a journal.
#[derive(Debug)]
pub struct Past {
    pub start: Start,
    /// Number of the first line that cannot be read, counted from 1. It and what follows do not count.
    pub unreadable: Option<u64>,
    path: PathBuf,
    /// Byte after the line that began it.
    from: u64,
    /// Byte after its last line that can be read.
    until: u64,
}

impl Past {
    /// Looks through a journal; `None` where no hunt began in it.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub(super) fn last(path: &Path) -> io::Result<Option<Past>> {
        let mut lines = Lines::of(File::open(path)?);
        let mut past: Option<Past> = None;
        while let Some((line, whole)) = lines.next()? {
            let record = parse(line, whole);
            match (record, &mut past) {
                (Some(Record::Start(start)), _) => {
                    let (from, path) = (lines.at, path.to_owned());
                    past = Some(Past { start, unreadable: None, path, from, until: from });
                }
                (Some(_), Some(p)) if p.unreadable.is_none() => p.until = lines.at,
                (None, Some(p)) if p.unreadable.is_none() => p.unreadable = Some(lines.number),
                _ => {}
            }
        }
        Ok(past)
    }

    /// Length of the journal without what cannot be read.
    pub(super) fn until(&self) -> u64 {
        self.until
    }

    /// Its lines after the first.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn records(&self) -> io::Result<impl Iterator<Item = io::Result<Record>> + use<>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.from))?;
        let mut lines = Lines::of(file.take(self.until - self.from));
        Ok(std::iter::from_fn(move || match lines.next() {
            Ok(None) => None,
            Ok(Some((line, whole))) => {
                let gone = || io::Error::new(io::ErrorKind::InvalidData, "it changed while it was read");
                Some(parse(line, whole).ok_or_else(gone))
            }
            Err(e) => Some(Err(e)),
        }))
    }
}

/// The record of a line; `None` where the line is torn or is no JSON of ours.
fn parse(line: &[u8], whole: bool) -> Option<Record> {
    if !whole {
        return None;
    }
    serde_json::from_slice(line).ok().filter(|r| matches!(r, Record::Start(_)) || !line.starts_with(START))
}

/// Lines and where they end.
struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    at: u64,
    number: u64,
}

impl<R: Read> Lines<R> {
    fn of(file: R) -> Lines<R> {
        Lines { reader: BufReader::new(file), line: vec![], at: 0, number: 0 }
    }

    /// The next line without its end, and whether it has one.
    fn next(&mut self) -> io::Result<Option<(&[u8], bool)>> {
        self.line.clear();
        let read = self.reader.read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        self.at += read as u64;
        self.number += 1;
        let whole = self.line.pop_if(|b| *b == b'\n').is_some();
        Ok(Some((&self.line, whole)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOURNAL: &str = "{\"event\":\"start\",\"journal\":1,\"pid\":1}\n{\"event\":\"inte\n\
        {\"event\":\"start\",\"journal\":2,\"hunt\":\"b\",\"pid\":2,\"command\":[],\"terms\":{\"seed\":7}}\n\
        {\"event\":\"intent\",\"first\":0,\"last\":1}\n{\"event\":\"bad\",\"case\":1,\"params\":{}}\n";

    fn last(text: &[u8]) -> Option<Past> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let past = Past::last(file.path()).unwrap()?;
        let records: Vec<Record> = past.records().unwrap().map(Result::unwrap).collect();
        let whole = past.until as usize;
        assert_eq!(records.len() + 3, text[..whole].iter().filter(|b| **b == b'\n').count());
        Some(past)
    }

    #[test]
    fn the_last_hunt_counts_and_an_older_torn_line_does_not_matter() {
        let past = last(JOURNAL.as_bytes()).unwrap();
        assert_eq!((past.start.hunt.as_str(), past.start.journal, past.unreadable), ("b", 2, None));
        assert_eq!(past.until as usize, JOURNAL.len());
        assert!(last(b"").is_none());
    }

    #[test]
    fn a_journal_cut_off_anywhere_is_read_up_to_its_last_whole_line() {
        let begun = JOURNAL.find("{\"event\":\"intent").unwrap();
        for cut in begun..JOURNAL.len() {
            let past = last(&JOURNAL.as_bytes()[..cut]).unwrap();
            let whole = JOURNAL[..cut].rfind('\n').unwrap() + 1;
            assert_eq!(past.until as usize, whole, "cut at {cut}");
            assert_eq!(past.unreadable.is_some(), cut != whole, "cut at {cut}");
        }
    }

    #[test]
    fn a_hole_of_zeros_ends_what_counts() {
        let mut text = JOURNAL.as_bytes().to_vec();
        let at = JOURNAL.find("{\"event\":\"intent").unwrap();
        text[at + 3..at + 60].fill(0);
        let past = last(&text).unwrap();
        assert_eq!((past.until as usize, past.unreadable), (at, Some(4)));
    }
}

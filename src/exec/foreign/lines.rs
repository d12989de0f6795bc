//! What a foreign program may say, line by line. Anything else that begins with `{` is an error of the program.

use crate::device::Access;
use crate::problem::{Knobs, Value};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

/// Memory that a program placed for a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// An operand, or anything else: scratch.
    pub name: String,
    /// The rank, where a list was given.
    pub copy: u32,
    /// Address; of an operand, that of its element 0.
    pub base: u64,
    pub bytes: Option<u64>,
}

/// What a program knows of an access, beside or without an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evidence {
    pub address: Option<u64>,
    pub access: Option<Access>,
    pub rank: Option<u32>,
}

/// The verdicts that a program can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    Pass,
    Fault,
    Wrong,
    Refused,
    Skipped,
}

const WORDS: [(&str, Word); 5] = [
    ("pass", Word::Pass),
    ("fault", Word::Fault),
    ("wrong", Word::Wrong),
    ("refused", Word::Refused),
    ("skipped", Word::Skipped),
];

/// The answer to one case.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub word: Word,
    pub evidence: Evidence,
    pub operand: Option<String>,
    /// Logical index of the first wrong element.
    pub first: Vec<i64>,
    pub count: Option<u64>,
    pub compared: Option<u64>,
    pub kernel: Option<String>,
    pub resolved: Knobs,
    pub detail: Option<String>,
    /// A skip that another moment may answer otherwise.
    pub state: bool,
}

/// One line of a program.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    Hello { version: u64, can: Vec<String> },
    SetupFailed(String),
    Launch { id: u64, memory: Vec<Memory> },
    Evidence { id: u64, evidence: Evidence },
    Answer { id: u64, reply: Box<Reply> },
    Knobs { id: u64, knobs: BTreeMap<String, Vec<Value>> },
}

/// Reads a line that begins with `{`.
///
/// # Errors
/// What is wrong with it, to follow "the program said: ".
pub fn parse(line: &str) -> Result<Line, String> {
    let json: Json = serde_json::from_str(line).map_err(|e| format!("a line that is no JSON ({e})"))?;
    let Json::Object(object) = &json else { return Err("a line that is no JSON object".to_owned()) };
    let o = Object(object);
    if object.contains_key("shrinkfault") {
        return Ok(Line::Hello { version: o.need("shrinkfault", "a number", Json::as_u64)?, can: o.texts("can")? });
    }
    if let Some(why) = o.text("setup_failed")? {
        return Ok(Line::SetupFailed(why));
    }
    let id = o.need("id", "the number of a case", Json::as_u64)?;
    if object.contains_key("verdict") {
        return Ok(Line::Answer { id, reply: Box::new(o.reply()?) });
    }
    if let Some(launch) = o.object("launch")? {
        return Ok(Line::Launch { id, memory: memory(launch)? });
    }
    if let Some(evidence) = o.object("evidence")? {
        return Ok(Line::Evidence { id, evidence: Object(evidence).evidence()? });
    }
    if let Some(knobs) = o.object("knobs")? {
        return Ok(Line::Knobs { id, knobs: lists(knobs)? });
    }
    Err("a line with an id but none of verdict, launch, evidence, knobs".to_owned())
}

/// Members of an object, with their types checked; `null` is as good as absent.
struct Object<'a>(&'a Map<String, Json>);

impl<'a> Object<'a> {
    fn get(&self, name: &str) -> Option<&'a Json> {
        self.0.get(name).filter(|v| !v.is_null())
    }

    fn maybe<T>(
        &self,
        name: &str,
        wanted: &str,
        read: impl FnOnce(&'a Json) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Some(value) = self.get(name) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| format!("{name} = {}, which is not {wanted}", short(value)))
    }

    fn need<T>(&self, name: &str, wanted: &str, read: impl FnOnce(&'a Json) -> Option<T>) -> Result<T, String> {
        self.maybe(name, wanted, read)?.ok_or_else(|| format!("a line without {name}"))
    }

    fn text(&self, name: &str) -> Result<Option<String>, String> {
        self.maybe(name, "a string", |v| v.as_str().map(str::to_owned))
    }

    fn object(&self, name: &str) -> Result<Option<&'a Map<String, Json>>, String> {
        self.maybe(name, "an object", Json::as_object)
    }

    fn texts(&self, name: &str) -> Result<Vec<String>, String> {
        let read = |v: &Json| v.as_array()?.iter().map(|t| t.as_str().map(str::to_owned)).collect();
        Ok(self.maybe(name, "a list of strings", read)?.unwrap_or_default())
    }

    fn evidence(&self) -> Result<Evidence, String> {
        let access = |v: &Json| match v.as_str()? {
            "r" => Some(Access::Read),
            "w" => Some(Access::Write),
            _ => None,
        };
        Ok(Evidence {
            address: self.maybe("address", "an address such as \"0x7f00\"", address)?,
            access: self.maybe("access", "\"r\" or \"w\"", access)?,
            rank: self.maybe("rank", "a rank from 0 to 4095", |v| v.as_u64().filter(|r| *r < 4096))?.map(|r| r as u32),
        })
    }

    fn reply(&self) -> Result<Reply, String> {
        let word = |v: &Json| WORDS.iter().find(|(w, _)| Some(*w) == v.as_str()).map(|(_, word)| *word);
        let first = |v: &Json| match v {
            Json::Array(list) => list.iter().map(Json::as_i64).collect(),
            one => one.as_i64().map(|i| vec![i]),
        };
        let resolved = |v: &Json| {
            let labels = v.as_object()?.iter().map(|(k, v)| Some((k.clone(), label(v)?)));
            labels.collect::<Option<Knobs>>()
        };
        Ok(Reply {
            word: self.need("verdict", "one of pass, fault, wrong, refused, skipped", word)?,
            evidence: self.evidence()?,
            operand: self.text("operand")?,
            first: self.maybe("first", "an index or a list of them", first)?.unwrap_or_default(),
            count: self.maybe("count", "a number", Json::as_u64)?,
            compared: self.maybe("compared", "a number", Json::as_u64)?,
            kernel: self.text("kernel")?,
            resolved: self.maybe("resolved", "an object of labels", resolved)?.unwrap_or_default(),
            detail: self.text("detail")?,
            state: self.maybe("state", "true or false", Json::as_bool)?.unwrap_or(false),
        })
    }
}

/// `"0x7f00"`, or a number.
fn address(value: &Json) -> Option<u64> {
    match value {
        Json::String(text) => u64::from_str_radix(text.strip_prefix("0x")?, 16).ok(),
        other => other.as_u64(),
    }
}

fn label(value: &Json) -> Option<Value> {
    match value {
        Json::Bool(b) => Some(Value::Bool(*b)),
        Json::String(text) => Some(Value::Text(text.clone())),
        other => other.as_i64().map(Value::Int),
    }
}

fn memory(launch: &Map<String, Json>) -> Result<Vec<Memory>, String> {
    let mut out = vec![];
    for (name, value) in launch {
        match value {
            Json::Array(ranks) if ranks.len() <= 4096 => {
                for (copy, one) in ranks.iter().enumerate() {
                    out.push(placed(name, copy as u32, one)?);
                }
            }
            one => out.push(placed(name, 0, one)?),
        }
    }
    Ok(out)
}

fn placed(name: &str, copy: u32, value: &Json) -> Result<Memory, String> {
    let (base, bytes) = match value {
        Json::Object(o) => (o.get("base").and_then(address), o.get("bytes").map(Json::as_u64)),
        other => (address(other), None),
    };
    match (base, bytes) {
        (Some(base), None | Some(Some(_))) => Ok(Memory { name: name.to_owned(), copy, base, bytes: bytes.flatten() }),
        _ => Err(format!(
            "launch.{name} = {}, which is neither \"0x..\" nor {{\"base\":\"0x..\",\"bytes\":n}}",
            short(value)
        )),
    }
}

fn lists(knobs: &Map<String, Json>) -> Result<BTreeMap<String, Vec<Value>>, String> {
    let mut out = BTreeMap::new();
    for (name, values) in knobs {
        let list = values.as_array().and_then(|l| l.iter().map(label).collect::<Option<Vec<Value>>>());
        let list = list.filter(|l| !l.is_empty());
        let list = list.ok_or_else(|| format!("knobs.{name} = {}, which is no list of labels", short(values)))?;
        out.insert(name.clone(), list);
    }
    Ok(out)
}

fn short(value: &Json) -> String {
    cut(&value.to_string())
}

/// The text, cut to a length that a message can carry.
pub fn cut(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_lines_of_the_contract_are_read() {
        assert_eq!(parse(r#"{"shrinkfault":1,"new":0}"#), Ok(Line::Hello { version: 1, can: vec![] }));
        let line = r#"{"id":7,"launch":{"A":"0x7f0000000000","s":{"base":"0x10","bytes":28},"B":["0x1","0x2"]}}"#;
        let Ok(Line::Launch { id: 7, memory }) = parse(line) else { panic!() };
        let place = |i: usize| (memory[i].name.as_str(), memory[i].copy, memory[i].base, memory[i].bytes);
        assert_eq!(place(0), ("A", 0, 0x7f00_0000_0000, None));
        assert_eq!(place(1), ("s", 0, 16, Some(28)));
        assert_eq!((place(2), place(3)), (("B", 0, 1, None), ("B", 1, 2, None)));
        let line =
            r#"{"id":7,"verdict":"wrong","first":[3,4],"count":2,"operand":"C","resolved":{"algo":2},"detail":null}"#;
        let Ok(Line::Answer { reply, .. }) = parse(line) else { panic!() };
        assert_eq!((reply.word, reply.first, reply.count), (Word::Wrong, vec![3, 4], Some(2)));
        assert_eq!(reply.resolved["algo"], Value::Int(2));
        let knobs = parse(r#"{"id":7,"knobs":{"algo":[0,"x",true]}}"#).unwrap();
        assert!(matches!(knobs, Line::Knobs { id: 7, .. }));
    }

    #[test]
    fn what_is_not_of_the_contract_is_said() {
        let bad = [
            ("{", "no JSON"),
            (r#"{"id":1}"#, "none of verdict"),
            (r#"{"verdict":"pass"}"#, "without id"),
            (r#"{"id":"1","verdict":"pass"}"#, "the number of a case"),
            (r#"{"id":1,"verdict":"fine"}"#, "one of pass, fault, wrong"),
            (r#"{"id":1,"verdict":"hang"}"#, "one of pass, fault, wrong"),
            (r#"{"id":1,"verdict":"fault","address":"7f"}"#, "an address"),
            (r#"{"id":1,"verdict":"fault","access":"x"}"#, "\"r\" or \"w\""),
            (r#"{"id":1,"launch":{"A":{"bytes":1}}}"#, "launch.A"),
            (r#"{"id":1,"launch":7}"#, "an object"),
            (r#"{"id":1,"knobs":{"a":[]}}"#, "no list of labels"),
            (r#"{"shrinkfault":"1"}"#, "a number"),
        ];
        for (line, part) in bad {
            let why = parse(line).unwrap_err();
            assert!(why.contains(part), "{line}: {why}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_refused_in_a_few_words(
            line in "\\PC{0,60}|\\{\"id\":(1|\"x\"|-1|1e9|null),\"(verdict|launch|evidence|knobs)\":(\"pass\"|7|\\{\"A\":[0-9\\[\\]\"x]{0,8}\\}|null)\\}"
        ) {
            if let Err(why) = parse(&line) {
                prop_assert!(!why.contains('\n') && why.len() < 400, "{}", why);
            }
        }
    }
}

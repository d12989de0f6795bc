//! Lays a table out as TOML that reads well: the order is kept, small tables stay on one line, sections are explained.

use toml::{Table, Value};

/// Tables that are written on one line.
const INLINE: [&str; 6] = ["last_good", "first_bad", "bad", "good", "alone", "changed"];
/// Lists of tables that get a heading per entry; all others have a line per entry.
const HEADED: [&str; 2] = ["witness", "before"];
/// Longest list on one line.
const WIDTH: usize = 110;

/// What a section is, above its heading.
fn comment(path: &str) -> Option<&'static str> {
    Some(match path {
        "minimal" => "The smallest case that fails in this way.",
        "fault" | "wrong" | "hang" | "crash" => "What the minimal case did.",
        "signature" => "What the accepted cases have in common; near may have become far; what is absent is unknown.",
        "confirmation" => "Runs in fresh processes: the minimal case, and its good neighbours together.",
        "witness" => "Pairs around the line: the minimal case with this parameter changed and nothing else.",
        "far" => "A case comfortably past the line: the minimal case with these parameters changed.",
        "irrelevant" => "Integers that make no difference, and how many other values of each were tried.",
        "choices" => "Other values of choices in the minimal case: passes, same (fails in this way), differs, not-run.",
        "shrinking" => "How the original case became the minimal one, and what was met on the way.",
        "original" => "The case as it was found.",
        "history" => "It fails only after other cases in the same process, and never failed without them (alone).",
        "history.before" => "Cases to run first, in this order; is_minimal: the minimal case itself, which follows it.",
        "environment" => "Where this was seen. Not part of what the finding is.",
        _ => return None,
    })
}

/// The text of a table.
pub fn toml(table: &Table) -> String {
    let mut out = String::new();
    body(&mut out, "", table);
    out
}

fn body(out: &mut String, path: &str, table: &Table) {
    for (key, value) in table.iter().filter(|(k, v)| !is_section(k, v)) {
        line(out, key, value);
    }
    for (key, value) in table.iter().filter(|(k, v)| is_section(k, v)) {
        let path = if path.is_empty() { bare(key) } else { format!("{path}.{}", bare(key)) };
        match value {
            Value::Table(inner) => section(out, &path, &format!("[{path}]"), inner, comment(&path)),
            Value::Array(list) => {
                for (n, inner) in list.iter().filter_map(Value::as_table).enumerate() {
                    section(out, &path, &format!("[[{path}]]"), inner, comment(&path).filter(|_| n == 0));
                }
            }
            _ => {}
        }
    }
}

fn is_section(key: &str, value: &Value) -> bool {
    match value {
        Value::Table(_) => !INLINE.contains(&key),
        Value::Array(_) => HEADED.contains(&key),
        _ => false,
    }
}

fn section(out: &mut String, path: &str, heading: &str, table: &Table, comment: Option<&str>) {
    out.push('\n');
    if let Some(text) = comment {
        out.push_str(&format!("# {text}\n"));
    }
    out.push_str(heading);
    out.push('\n');
    body(out, path, table);
}

fn line(out: &mut String, key: &str, value: &Value) {
    let key = bare(key);
    match value {
        Value::Array(list) => {
            let short = inline(value);
            if short.len() <= WIDTH && !list.iter().any(Value::is_table) {
                out.push_str(&format!("{key} = {short}\n"));
            } else {
                out.push_str(&format!("{key} = [\n"));
                for entry in list {
                    out.push_str(&format!("  {},\n", inline(entry)));
                }
                out.push_str("]\n");
            }
        }
        _ => out.push_str(&format!("{key} = {}\n", inline(value))),
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::Table(table) => {
            let rows: Vec<String> = table.iter().map(|(k, v)| format!("{} = {}", bare(k), inline(v))).collect();
            if rows.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", rows.join(", ")) }
        }
        Value::Array(list) => format!("[{}]", list.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

/// A key as TOML takes it: quoted unless it is a plain word.
fn bare(key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if plain { key.to_owned() } else { quoted(key) }
}

/// A string on one line, whatever is in it.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sections_are_headed_and_small_tables_stay_on_one_line() {
        let source = "a = [1, 2]\n[minimal]\nx = \"y\"\n[[witness]]\nparam = \"m\"\nlast_good = { value = 1 }\n[[witness]]\nparam = \"n\"\n";
        let text = toml(&source.parse::<Table>().unwrap());
        let expected = "a = [1, 2]\n\n# The smallest case that fails in this way.\n[minimal]\nx = \"y\"\n\n\
            # Pairs around the line: the minimal case with this parameter changed and nothing else.\n[[witness]]\n\
            param = \"m\"\nlast_good = { value = 1 }\n\n[[witness]]\nparam = \"n\"\n";
        assert_eq!(text, expected);
    }

    proptest! {
        #[test]
        fn any_strings_and_keys_read_back_as_written(
            rows in prop::collection::btree_map(any::<String>(), prop::collection::vec(any::<String>(), 0..4), 0..4)
        ) {
            let mut table = Table::new();
            for (key, list) in rows {
                let value = match list.len() {
                    1 => Value::String(list[0].clone()),
                    2 => Value::Table([(list[0].clone(), Value::String(list[1].clone()))].into_iter().collect()),
                    _ => Value::Array(list.into_iter().map(Value::String).collect()),
                };
                if !HEADED.contains(&key.as_str()) {
                    table.insert(key, value);
                }
            }
            prop_assert_eq!(toml(&table).parse::<Table>().unwrap(), table);
        }
    }
}

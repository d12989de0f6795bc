//! Parameters and constraints of a manifest.

use super::source::{Fields, Node};
use super::{MOST, ManifestError};
use crate::problem::expr::Condition;
use crate::problem::{Constraint, Domain, Param, Problem, Role, Value};

/// Words of the expression language that no parameter or operand can be called.
const RESERVED: [&str; 8] = ["and", "or", "not", "if", "min", "max", "cdiv", "sizeof"];

/// Largest magnitude of an integer parameter: differences of two values fit signed 64 bits.
const FARTHEST: u64 = 1 << 62;

const ROLES: [(&str, Role); 6] = [
    ("size", Role::Size),
    ("stride", Role::Stride),
    ("count", Role::Count),
    ("ranks", Role::Ranks),
    ("offset", Role::Offset),
    ("placement", Role::Placement),
];

/// A name that expressions can hold.
pub(super) fn identifier(node: &Node<'_>, name: &str) -> Result<String, ManifestError> {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !starts || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') || name.len() > 60 {
        return Err(node.error("a name is a letter or '_', then letters, digits and '_', 60 at most"));
    }
    if RESERVED.contains(&name) {
        return Err(node.error(format!("'{name}' is a word of the expression language; choose another name")));
    }
    Ok(name.to_owned())
}

pub(super) fn params(top: &Fields<'_>) -> Result<Vec<Param>, ManifestError> {
    let table = top.need("params", "[params.M] with min = 1 and max = 4096")?;
    let fields = table.fields(&[])?;
    if fields.entries().is_empty() || fields.entries().len() > MOST {
        return Err(table.error(format!("a problem has 1 to {MOST} parameters")));
    }
    let params = fields.entries().iter().map(param).collect::<Result<Vec<Param>, _>>()?;
    let placements = params.iter().filter(|p| p.role == Role::Placement).count();
    if placements > 1 {
        return Err(table.error("only one parameter can have role = \"placement\""));
    }
    Ok(params)
}

fn param(node: &Node<'_>) -> Result<Param, ManifestError> {
    let name = identifier(node, &node.name)?;
    let fields = node.fields(&["min", "max", "default", "step", "role", "values", "note"])?;
    let role = match fields.get("role") {
        None => Role::Size,
        Some(word) => role(word)?,
    };
    let domain = match fields.get("values") {
        Some(list) => {
            if let Some(other) = ["min", "max", "step"].iter().find_map(|k| fields.get(k)) {
                return Err(other.error("a parameter has either values, or min and max"));
            }
            Domain::choice(choice(list, role)?)
        }
        None if role == Role::Placement => {
            return Err(node.error("a placement has values = [\"end\", \"start\"], or one of them"));
        }
        None => integer(node, &fields)?,
    };
    let mut param = Param { name, doc: "", domain, plain: 0, role, default: None, active: None };
    param.plain = param.least();
    if let Some(default) = fields.get("default") {
        let value = value(default)?;
        param.default = Some(param.store(&value).map_err(|e| default.error(e))?);
    }
    Ok(param)
}

fn role(word: &Node<'_>) -> Result<Role, ManifestError> {
    let text = word.text()?;
    let names: Vec<&str> = ROLES.iter().map(|(n, _)| *n).collect();
    let found = ROLES.iter().find(|(n, _)| *n == text).map(|(_, role)| *role);
    found.ok_or_else(|| word.error(format!("'{text}' is not one of {}", names.join(", "))))
}

fn integer(node: &Node<'_>, fields: &Fields<'_>) -> Result<Domain, ManifestError> {
    let least = fields.need("min", "min = 1 and max = 4096, or values = [..]")?.integer()?;
    let most_node = fields.need("max", "max = 4096")?;
    let (most, step) = (most_node.integer()?, fields.get("step").map_or(Ok(1), Node::integer)?);
    if step < 1 {
        return Err(node.error("step is 1 or more"));
    }
    if let Some(far) = [least, most].into_iter().find(|v| v.unsigned_abs() > FARTHEST) {
        return Err(node.error(format!("{far} is too far out; a parameter lies between -2^62 and 2^62")));
    }
    if most < least {
        return Err(most_node.error(format!("the maximum {most} is below the minimum {least}")));
    }
    Ok(Domain::Integer { min: least, max: most, step })
}

fn choice(list: &Node<'_>, role: Role) -> Result<Vec<Value>, ManifestError> {
    let values = values(list)?;
    if role == Role::Placement && values.iter().any(|v| !matches!(v.to_string().as_str(), "end" | "start")) {
        return Err(list.error("a placement is \"end\" or \"start\""));
    }
    Ok(values)
}

/// A list of distinct labels of one type.
pub(super) fn values(list: &Node<'_>) -> Result<Vec<Value>, ManifestError> {
    let nodes = list.list("[\"f32\", \"bf16\"] or [false, true]")?;
    let values = nodes.iter().map(value).collect::<Result<Vec<Value>, _>>()?;
    if values.is_empty() || values.len() > 1000 {
        return Err(list.error("list 1 to 1000 values, the plainest first"));
    }
    for (i, v) in values.iter().enumerate() {
        if values[..i].iter().any(|other| other.to_string() == v.to_string()) {
            return Err(nodes[i].error(format!("{v} is listed twice")));
        }
        if std::mem::discriminant(v) != std::mem::discriminant(&values[0]) {
            return Err(nodes[i].error("list values of one type: strings, integers, or false and true"));
        }
    }
    Ok(values)
}

fn value(node: &Node<'_>) -> Result<Value, ManifestError> {
    match node.boolean() {
        Some(b) => Ok(Value::Bool(b)),
        None if node.is_text() => label(node),
        None => Ok(Value::Int(node.integer()?)),
    }
}

fn label(node: &Node<'_>) -> Result<Value, ManifestError> {
    let text = node.text()?;
    if text.is_empty() || text.len() > 200 || text.contains(['\'', '\n']) {
        return Err(node.error("a label has 1 to 200 bytes and neither ' nor a line break"));
    }
    Ok(Value::Text(text.to_owned()))
}

/// Parses the constraints, which may mention any parameter and the size of any operand.
pub(super) fn constraints(top: &Fields<'_>, problem: &mut Problem) -> Result<(), ManifestError> {
    let Some(list) = top.get("constraints") else { return Ok(()) };
    for node in list.list("[\"lda >= M\"]")? {
        let text = node.text()?;
        let condition = Condition::parse(text, problem).map_err(|e| node.error(format!("'{text}': {e}")))?;
        let constraint = Constraint::new(condition, &problem.params);
        problem.constraints.push(constraint);
    }
    Ok(())
}

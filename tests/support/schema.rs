//! contrib/schema/status.schema.json, as far as it goes: a keyword that is not known here fails.

use serde_json::Value;

use super::client::Response;

/// Which part of the schema an answer has to be like.
pub const DEFS: &str = "#/$defs/";

fn schema() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/contrib/schema/status.schema.json"
    );
    let text = std::fs::read_to_string(path).expect("the schema");
    serde_json::from_str(&text).expect("a schema of JSON")
}

/// The answer's body as JSON, which is like a part of the schema: `status` for all of it, `upstrands`,
/// or the name of a definition.
#[track_caller]
pub fn checked(response: &Response, part: &str) -> Value {
    assert_eq!(
        response.header("Content-Type"),
        Some("application/json"),
        "{response:?}"
    );
    assert_eq!(response.header("Cache-Control"), Some("no-store"));
    let value: Value = serde_json::from_slice(&response.body)
        .unwrap_or_else(|e| panic!("{e} in {}", response.text()));
    let root = schema();
    let rule = match part {
        "status" => &root,
        "upstrands" => &root["properties"]["upstrands"],
        part => &root["$defs"][part],
    };
    assert!(rule.is_object(), "no {part} in the schema");
    if let Err(why) = check(&root, rule, &value) {
        panic!("not like {part}: {why}\n{}", response.text());
    }
    value
}

/// A refusal with this status.
#[track_caller]
pub fn refused(response: &Response, status: u16) -> String {
    let value = checked(response, "error");
    assert_eq!(response.status, status, "{value}");
    assert_eq!(value["error"]["status"], status);
    value["error"]["text"].as_str().expect("a text").to_string()
}

fn check(root: &Value, rule: &Value, value: &Value) -> Result<(), String> {
    let rule = rule.as_object().ok_or("a rule that is none")?;
    for (keyword, wanted) in rule {
        let holds = match keyword.as_str() {
            "$schema" | "title" | "description" | "$defs" => true,
            "$ref" => {
                let name = wanted.as_str().and_then(|to| to.strip_prefix(DEFS));
                let name = name.ok_or("a reference to elsewhere")?;
                check(root, &root["$defs"][name], value)?;
                true
            }
            "type" => match wanted {
                Value::Array(types) => types.iter().any(|kind| is(kind, value)),
                kind => is(kind, value),
            },
            "const" => wanted == value,
            "enum" => wanted.as_array().is_some_and(|all| all.contains(value)),
            "minimum" => value.as_u64() >= wanted.as_u64(),
            "maximum" => value.as_u64() <= wanted.as_u64(),
            "pattern" => value.as_str().is_none_or(is_time),
            "oneOf" => {
                let all = wanted.as_array().ok_or("oneOf")?;
                all.iter()
                    .filter(|rule| check(root, rule, value).is_ok())
                    .count()
                    == 1
            }
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    check(root, wanted, item)?;
                }
                true
            }
            "required" => wanted
                .as_array()
                .into_iter()
                .flatten()
                .all(|key| key.as_str().is_some_and(|key| value.get(key).is_some())),
            "properties" => {
                for (key, own) in value.as_object().into_iter().flatten() {
                    if let Some(rule) = wanted.get(key) {
                        check(root, rule, own).map_err(|why| format!("{key}: {why}"))?;
                    }
                }
                true
            }
            "additionalProperties" => {
                let known = rule.get("properties");
                for (key, own) in value.as_object().into_iter().flatten() {
                    let is_known = known.is_some_and(|known| known.get(key).is_some());
                    match wanted {
                        Value::Bool(false) if !is_known => return Err(format!("what is {key}?")),
                        Value::Object(_) if !is_known => {
                            check(root, wanted, own).map_err(|why| format!("{key}: {why}"))?;
                        }
                        _ => {}
                    }
                }
                true
            }
            other => return Err(format!("the keyword {other} is not known to the test")),
        };
        if !holds {
            return Err(format!("{value} against {keyword}: {wanted}"));
        }
    }
    Ok(())
}

fn is(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("integer") => value.is_u64() || value.is_i64(),
        _ => false,
    }
}

/// The one pattern that there is.
fn is_time(text: &str) -> bool {
    let form = "dddd-dd-ddTdd:dd:dd.dddZ";
    text.len() == form.len()
        && text
            .chars()
            .zip(form.chars())
            .all(|(own, form)| match form {
                'd' => own.is_ascii_digit(),
                form => own == form,
            })
}

//! The model named in a response.

use memchr::memmem::find_iter;

/// Digest of the model in the first member `model` of a JSON text, or `modelVersion` at Google; 0
/// without one. The searched bytes cannot occur inside a string, because its quotes are escaped.
pub(super) fn digest(json: &str) -> u32 {
    let mut values = find_iter(json.as_bytes(), "\"model").filter_map(|at| {
        let rest = &json[at + "\"model".len()..];
        let rest = rest.strip_prefix("Version").unwrap_or(rest).strip_prefix('"')?;
        let value = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        value.split('"').next().filter(|name| !name.is_empty())
    });
    values.next().map_or(0, |name| crc32fast::hash(common_name(name).as_bytes()).max(1))
}

/// Strips the provider prefix (`openai/`) and the snapshot date from a name, because gateways add
/// or remove them.
fn common_name(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let name = name.trim_end_matches("latest").trim_end_matches([':', '-']);
    let (base, digits) =
        name.split_at(name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-').len());
    let is_date = digits.starts_with('-') && digits.bytes().filter(u8::is_ascii_digit).count() == 8;
    if is_date { base.to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn a_model_is_known_by_its_common_name() {
        let plain = digest(r#"{"id":"1","model":"gpt-4o-mini","choices":[]}"#);
        for same in [
            r#"{"model" : "openai/gpt-4o-mini"}"#,
            r#"{"type":"message_start","message":{"model":"gpt-4o-mini-2024-07-18"}}"#,
            r#"{"candidates":[{"content":{"role":"model"}}],"modelVersion":"gpt-4o-mini-20240718"}"#,
            r#"{"text":"say \"model\":\"other\"","model":"GPT-4o-mini-latest"}"#,
        ] {
            assert_eq!(digest(same), plain, "{same}");
        }
        for other in
            [r#"{"model":"gpt-4o"}"#, r#"{"model":"gpt-4o-mini-2"}"#, r#"{"model":"mini"}"#]
        {
            assert!(![0, plain].contains(&digest(other)), "{other}");
        }
        for none in ["{}", r#"{"model":null}"#, r#"{"model":""}"#, r#"{"role":"model"}"#, "\"model"]
        {
            assert_eq!(digest(none), 0, "{none}");
        }
    }
}

//! A second implementation of the event-stream standard for comparison. The fuzz target `sse` uses
//! it too.

/// Name and data of each event.
pub(crate) type Events = Vec<(String, String)>;

/// The standard's algorithm on a whole text, written for clarity rather than speed.
pub(crate) fn oracle(text: &str) -> Events {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    // The text after the last line end is an unfinished line.
    let lines: Vec<&str> = text.split('\n').collect();
    let (mut events, mut name, mut data) = (Vec::new(), String::new(), String::new());
    for line in &lines[..lines.len() - 1] {
        if line.is_empty() {
            if let Some(data) = data.strip_suffix('\n') {
                events.push((name.clone(), data.to_owned()));
            }
            name.clear();
            data.clear();
        } else if !line.starts_with(':') {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => value.clone_into(&mut name),
                "data" => data.extend([value, "\n"]),
                _ => {}
            }
        }
    }
    events
}

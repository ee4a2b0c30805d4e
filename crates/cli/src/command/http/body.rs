//! The body of a request: text, a file, or standard input; and its content type.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::exit::UsageError;
use crate::flags::literal;

/// A body.
#[derive(Debug)]
pub(super) struct Body {
    content: Content,
    /// The content type that its name or its text shows, where no header gives one.
    guessed: Option<&'static str>,
}

#[derive(Debug)]
enum Content {
    Text(String),
    /// Binary content in a file; a file without a name stays open as long as it is needed.
    Bytes {
        file: PathBuf,
        _open: Option<fs::File>,
    },
}

impl Body {
    /// The body of the flags.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn read(body: Option<&str>, headers: &[String]) -> Result<Self, UsageError> {
        let has_type = headers.iter().any(|header| {
            let name = header.split(':').next().unwrap_or_default();
            is_content_type(name)
        });
        let Some(body) = body else { return Ok(Self::text(String::new(), true)) };
        let Some(file) = body.strip_prefix('@') else {
            return Ok(Self::text(body.to_owned(), has_type));
        };
        let refused = |error: io::Error| {
            UsageError(format!(
                "--body: cannot read {file}: {error}; name a file that can be read, or - for standard input"
            ))
        };
        let (bytes, path) = if file == "-" {
            let mut bytes = Vec::new();
            io::stdin().take(plimsoll_input::MOST).read_to_end(&mut bytes).map_err(refused)?;
            (bytes, None)
        } else {
            (plimsoll_input::read(Path::new(file)).map_err(refused)?, Some(Path::new(file)))
        };
        let by_name = path.and_then(by_extension);
        let mut body = match String::from_utf8(bytes) {
            Ok(text) => Self::text(text, has_type),
            Err(error) => {
                let content = match path {
                    Some(path) => {
                        let file = std::path::absolute(path).map_err(refused)?;
                        Content::Bytes { file, _open: None }
                    }
                    None => kept(error.as_bytes()).map_err(refused)?,
                };
                Self { content, guessed: Some("application/octet-stream") }
            }
        };
        body.guessed = by_name.or(body.guessed).filter(|_| !has_type);
        Ok(body)
    }

    /// A text, and its type unless that is given.
    pub(super) fn text(text: String, has_type: bool) -> Self {
        let guessed = type_of(&text).filter(|_| !has_type);
        Self { content: Content::Text(text), guessed }
    }

    /// The body in the `http` format of a profile.
    pub(super) fn spec(&self) -> Value {
        let mut spec = match &self.content {
            Content::Text(text) => json!({"body": literal(text)}),
            Content::Bytes { file, .. } => {
                json!({"body_file": literal(&file.display().to_string())})
            }
        };
        if let Some(guessed) = self.guessed {
            spec["headers"] = json!({"content-type": guessed});
        }
        spec
    }

    /// A note with the guessed type.
    pub(super) fn guess(&self) -> Option<String> {
        let guessed = self.guessed?;
        Some(format!("the body is sent as {guessed}; override it with -H 'content-type: TYPE'"))
    }
}

/// Whether a header gives the type of a body.
pub(super) fn is_content_type(name: &str) -> bool {
    name.trim().eq_ignore_ascii_case("content-type")
}

/// Bytes of standard input, in a file without a name.
fn kept(bytes: &[u8]) -> io::Result<Content> {
    let mut file = tempfile::tempfile()?;
    file.write_all(bytes)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    Ok(Content::Bytes { file: path, _open: Some(file) })
}

fn by_extension(file: &Path) -> Option<&'static str> {
    let extension = file.extension()?.to_str()?.to_ascii_lowercase();
    Some(match extension.as_str() {
        "json" => "application/json",
        "jsonl" | "ndjson" => "application/x-ndjson",
        "xml" => "application/xml",
        "html" | "htm" => "text/html",
        "csv" => "text/csv",
        "txt" => "text/plain",
        "yaml" | "yml" => "application/yaml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "pdf" => "application/pdf",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "zip" => "application/zip",
        "gz" => "application/gzip",
        "wasm" => "application/wasm",
        _ => return None,
    })
}

/// The type of a text that begins like JSON (with placeholders in it, it need not be any yet) or
/// XML, or that is a form.
fn type_of(text: &str) -> Option<&'static str> {
    let start = text.trim_start();
    if start.starts_with(['{', '[']) && !start.starts_with("{{") {
        return Some("application/json");
    }
    if start.starts_with("<?xml") {
        return Some("application/xml");
    }
    let text = text.trim_end();
    let is_form = !text.contains(char::is_whitespace) && text.split('&').all(is_pair);
    is_form.then_some("application/x-www-form-urlencoded")
}

/// Whether it is a pair of a form, `name=value`.
fn is_pair(pair: &str) -> bool {
    pair.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.%+[]".contains(&b))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_follows_from_the_name_or_the_text() {
        for (text, guessed) in [
            ("{\"a\": {{seq}}}", Some("application/json")),
            ("[1]", Some("application/json")),
            ("{{uuid}}", None),
            ("<?xml version='1.0'?><a/>", Some("application/xml")),
            ("a=b&c[]=%20", Some("application/x-www-form-urlencoded")),
            ("a = b", None),
            ("plain words", None),
            ("", None),
        ] {
            assert_eq!(type_of(text), guessed, "{text}");
        }
        assert_eq!(by_extension(Path::new("a/B.PNG")), Some("image/png"));
        assert_eq!(by_extension(Path::new("a")), None);
    }
}

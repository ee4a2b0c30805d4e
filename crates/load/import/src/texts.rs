//! The texts of a request: embeds images, and replaces personal data.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use regex::Regex;
use serde_json::Value;

use crate::record::Request;

/// Endings of the names of images, and their types.
const IMAGES: &str = include_str!("images.tsv");

/// Kinds of personal data, each with its pattern.
static PERSONAL: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    let rows = include_str!("personal.tsv").lines().filter_map(|row| row.split_once('\t'));
    rows.filter_map(|(kind, pattern)| Some((kind, Regex::new(pattern).ok()?))).collect()
});

/// Treatment of the texts of requests.
pub(crate) struct Texts<'p> {
    /// The folder of images.
    pub(crate) folder: &'p Path,
    pub(crate) scrubs: bool,
    /// The replaced personal data, by kind.
    pub(crate) scrubbed: BTreeMap<String, u64>,
}

impl Texts<'_> {
    /// Embeds images that are named by their path, and replaces personal data if asked.
    pub(crate) fn apply(&mut self, request: &mut Request) -> Result<(), String> {
        let Request { messages, reply, body, body_text, .. } = request;
        let lists = messages.iter_mut().chain(reply).flatten();
        for value in lists.chain(body.values_mut()) {
            self.visit("", value)?;
        }
        if let Some(text) = body_text {
            self.scrub(text);
        }
        Ok(())
    }

    fn visit(&mut self, name: &str, value: &mut Value) -> Result<(), String> {
        match value {
            Value::Array(list) => list.iter_mut().try_for_each(|inner| self.visit(name, inner)),
            Value::Object(members) => {
                members.iter_mut().try_for_each(|(name, inner)| self.visit(name, inner))
            }
            Value::String(text) if matches!(name, "url" | "image_url" | "data") => {
                if let Some(path) = text.strip_prefix("file:") {
                    *text = embedded(&self.folder.join(path))?;
                }
                Ok(())
            }
            Value::String(text) => {
                self.scrub(text);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn scrub(&mut self, text: &mut String) {
        for (kind, pattern) in PERSONAL.iter().filter(|_| self.scrubs) {
            let found = pattern.find_iter(text).count() as u64;
            if found > 0 {
                *text = pattern.replace_all(text, format!("[{kind}]")).into_owned();
                *self.scrubbed.entry(format!("{kind} (scrubbed)")).or_default() += found;
            }
        }
    }
}

/// An image as a data URL.
fn embedded(path: &Path) -> Result<String, String> {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let mut kinds = IMAGES.lines().filter_map(|row| row.split_once('\t'));
    let shown = path.display();
    let (_, kind) = kinds
        .find(|(known, _)| *known == ending)
        .ok_or_else(|| format!("names {shown}, which is not an image (png, jpg, gif, webp)"))?;
    let bytes =
        fs::read(path).map_err(|error| format!("image {shown} cannot be read ({error})"))?;
    Ok(format!("data:{kind};base64,{}", BASE64_STANDARD.encode(bytes)))
}

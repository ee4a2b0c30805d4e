//! Requests of the `http` protocol, fixed or with placeholders that each turn fills in.

use std::sync::Arc;

use plimsoll_protocol::HttpContent;

use crate::error::{ScenarioFault, TemplateFault};
use crate::spec::HttpSpec;
use crate::template::{PlaceholderValues, PromptEncoding, Template};

/// The request of the `http` protocol.
#[derive(Debug)]
pub(crate) enum HttpRequest {
    /// A fixed request.
    Fixed(HttpContent),
    /// A request with placeholders.
    Filled(HttpTemplates),
}

/// The parts of a request in which placeholders are replaced.
#[derive(Debug)]
pub(crate) struct HttpTemplates {
    method: String,
    path: Template,
    headers: Vec<(String, Template)>,
    body: Body,
}

/// The body of a request.
#[derive(Debug)]
enum Body {
    Template(Template, PromptEncoding),
    /// The bytes of a file.
    Raw(Arc<[u8]>),
}

impl HttpRequest {
    /// # Errors
    /// Every part that is not a valid template, by its key.
    pub(crate) fn new(spec: &HttpSpec) -> Result<Self, Vec<(String, ScenarioFault)>> {
        let mut faults = Vec::new();
        let mut parse = |field: String, text: &str| {
            Template::parse(text)
                .map_err(|fault: TemplateFault| faults.push((field, fault.into())))
                .ok()
        };
        let path = parse("http.path".to_owned(), &spec.path);
        let template = parse("http.body".to_owned(), &spec.body);
        let headers: Vec<_> = spec
            .headers
            .iter()
            .filter_map(|(name, value): (&String, &String)| {
                Some((name.clone(), parse(format!("http.headers.{name}"), value)?))
            })
            .collect();
        let body = match &spec.body_file {
            None => template.map(|text| Body::Template(text, PromptEncoding::of_body(&spec.body))),
            Some(_) if !spec.body.is_empty() => {
                faults.push(("http.body_file".to_owned(), ScenarioFault::TwoBodies));
                None
            }
            Some(file) => plimsoll_input::read(file)
                .map(|bytes| Body::Raw(bytes.into()))
                .map_err(|error| {
                    let (file, cause) = (file.display().to_string(), error.to_string());
                    let fault = ScenarioFault::BodyFile { file, cause };
                    faults.push(("http.body_file".to_owned(), fault));
                })
                .ok(),
        };
        let (Some(path), Some(body), true) = (path, body, faults.is_empty()) else {
            return Err(faults);
        };
        let templates = HttpTemplates { method: spec.method.clone(), path, headers, body };
        Ok(if templates.is_fixed() {
            let mut content = HttpContent::from(spec);
            if let Body::Raw(bytes) = &templates.body {
                content.body = bytes.to_vec();
            }
            Self::Fixed(content)
        } else {
            Self::Filled(templates)
        })
    }

    /// Whether a placeholder inserts the content.
    pub(crate) fn has_prompt(&self) -> bool {
        match self {
            Self::Fixed(_) => false,
            Self::Filled(templates) => templates.has_prompt(),
        }
    }
}

impl HttpTemplates {
    fn parts(&self) -> impl Iterator<Item = &Template> {
        let headers = self.headers.iter().map(|(_, value)| value);
        let body = match &self.body {
            Body::Template(body, _) => Some(body),
            Body::Raw(_) => None,
        };
        [&self.path].into_iter().chain(body).chain(headers)
    }

    /// Whether a placeholder asks for the content.
    pub(crate) fn has_prompt(&self) -> bool {
        self.parts().any(Template::has_prompt)
    }

    fn is_fixed(&self) -> bool {
        self.parts().all(Template::is_fixed)
    }

    pub(crate) fn fill(&self, mut values: PlaceholderValues<'_>) -> HttpContent {
        let path = self.path.fill(&mut values, PromptEncoding::Path);
        let headers = self
            .headers
            .iter()
            .map(|(name, value): &(String, Template)| {
                (name.clone(), value.fill(&mut values, PromptEncoding::Header))
            })
            .collect();
        let body = match &self.body {
            Body::Template(body, encoding) => body.fill(&mut values, *encoding).into_bytes(),
            Body::Raw(bytes) => bytes.to_vec(),
        };
        HttpContent { method: self.method.clone(), path, headers, body }
    }
}

impl From<&HttpSpec> for HttpContent {
    fn from(spec: &HttpSpec) -> Self {
        Self {
            method: spec.method.clone(),
            path: spec.path.clone(),
            headers: spec.headers.clone().into_iter().collect(),
            body: spec.body.clone().into_bytes(),
        }
    }
}

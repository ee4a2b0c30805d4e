//! Plain HTTP requests, fixed or filled in anew for every turn.

use plimsoll_protocol::HttpContent;

use crate::error::{ScenarioFault, TemplateFault};
use crate::spec::HttpSpec;
use crate::template::{Filling, Place, Template};

/// The request of the `http` protocol.
#[derive(Debug)]
pub(crate) enum Request {
    /// Always the same.
    Fixed(HttpContent),
    /// With placeholders.
    Filled(Templates),
}

/// The parts of a request in which placeholders are replaced.
#[derive(Debug)]
pub(crate) struct Templates {
    method: String,
    path: Template,
    headers: Vec<(String, Template)>,
    body: Template,
    body_place: Place,
}

impl Request {
    /// # Errors
    /// Every part that is not a template, by its key.
    pub(crate) fn new(spec: &HttpSpec) -> Result<Self, Vec<(String, ScenarioFault)>> {
        let mut faults = Vec::new();
        let mut read = |field: String, text: &str| {
            let fault = |fault: TemplateFault| faults.push((field, fault.into()));
            Template::parse(text).map_err(fault).ok()
        };
        let path = read("http.path".to_owned(), &spec.path);
        let body = read("http.body".to_owned(), &spec.body);
        let header = |(name, value): (&String, &String)| {
            Some((name.clone(), read(format!("http.headers.{name}"), value)?))
        };
        let headers: Vec<_> = spec.headers.iter().filter_map(header).collect();
        let (Some(path), Some(body), true) = (path, body, faults.is_empty()) else {
            return Err(faults);
        };
        let (method, body_place) = (spec.method.clone(), Place::of_body(&spec.body));
        let templates = Templates { method, path, headers, body, body_place };
        Ok(if templates.is_fixed() { Self::Fixed(spec.into()) } else { Self::Filled(templates) })
    }

    /// Does the content go into it?
    pub(crate) fn has_prompt(&self) -> bool {
        match self {
            Self::Fixed(_) => false,
            Self::Filled(templates) => templates.has_prompt(),
        }
    }
}

impl Templates {
    fn parts(&self) -> impl Iterator<Item = &Template> {
        let headers = self.headers.iter().map(|(_, value)| value);
        [&self.path, &self.body].into_iter().chain(headers)
    }

    /// Does the content go into them?
    pub(crate) fn has_prompt(&self) -> bool {
        self.parts().any(Template::has_prompt)
    }

    fn is_fixed(&self) -> bool {
        self.parts().all(Template::is_fixed)
    }

    pub(crate) fn fill(&self, mut filling: Filling<'_>) -> HttpContent {
        let path = self.path.fill(&mut filling, Place::Path);
        let header = |(name, value): &(String, Template)| {
            (name.clone(), value.fill(&mut filling, Place::Header))
        };
        let headers = self.headers.iter().map(header).collect();
        let body = self.body.fill(&mut filling, self.body_place).into_bytes();
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

//! Routes, and the look-up of a request's route by its path.

use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::HeaderValue;

use crate::assembly::agent_route::AgentRoute;
use crate::assembly::tool_route::ToolRoute;
use crate::layers::Access;
use crate::upstream::proxy::Proxy;

/// Serves the requests of a route.
#[derive(Clone, Debug)]
pub(crate) enum Handler {
    Live,
    Health,
    Ready,
    Metrics,
    Build,
    Reload,
    Budget,
    /// `POST /api/request`.
    Policy,
    /// A route of the layer of agents.
    Agents(AgentRoute),
    /// Tools, over REST and MCP.
    Tools(ToolRoute),
    Fixed(FixedResponse),
    Proxy(Proxy),
    NotFound,
}

/// A configured response, the same for every request.
#[derive(Clone, Debug)]
pub(crate) struct FixedResponse {
    pub(crate) status: StatusCode,
    pub(crate) content_type: HeaderValue,
    pub(crate) body: Bytes,
}

/// A route: its handler, and who may use it.
#[derive(Debug)]
pub(crate) struct Route {
    /// Name in audit rows and the access log.
    pub(crate) name: Arc<str>,
    /// The path as configured: the label in metrics, so that raw paths make no new series.
    pub(crate) template: Arc<str>,
    pub(crate) handler: Handler,
    pub(crate) access: Access,
    /// Neither keys nor limits apply.
    pub(crate) open: bool,
    /// Only those who may administrate are served.
    pub(crate) is_administration: bool,
}

impl Route {
    /// The route of all unknown paths: one series and one name, however many paths an attacker
    /// tries.
    pub(crate) fn not_found() -> Self {
        Self {
            name: Arc::from("none"),
            template: Arc::from("none"),
            handler: Handler::NotFound,
            access: Access::default(),
            open: true,
            is_administration: false,
        }
    }
}

/// All routes.
#[derive(Debug, Default)]
pub(crate) struct Router {
    routes: Vec<Arc<Route>>,
    paths: matchit::Router<usize>,
}

/// The value of the last parameter of a path, as in `/v1/budget/{tenant}`.
pub(crate) type Parameter = Option<String>;

impl Router {
    /// # Errors
    /// A message about a malformed path, or one that has a route already.
    pub(crate) fn add(&mut self, route: Route) -> Result<(), String> {
        let template = Arc::clone(&route.template);
        let number = self.routes.len();
        for path in patterns(&template) {
            self.paths
                .insert(path.clone(), number)
                .map_err(|error| format!("path `{template}`: {error}"))?;
        }
        self.routes.push(Arc::new(route));
        Ok(())
    }

    /// The route of a path. Parameters are only copied if the route has them.
    pub(crate) fn find(&self, path: &str) -> Option<(&Arc<Route>, Parameter)> {
        let found = self.paths.at(path).ok()?;
        let parameter = found.params.iter().last().map(|(_, value)| value.to_owned());
        Some((self.routes.get(*found.value)?, parameter))
    }
}

/// Patterns for the router library: a prefix matches itself, with and without a slash, and all
/// paths below.
fn patterns(path: &str) -> Vec<String> {
    match path.strip_suffix("/*") {
        None => vec![path.to_owned()],
        Some("") => vec!["/".to_owned(), "/{*rest}".to_owned()],
        Some(prefix) => {
            vec![prefix.to_owned(), format!("{prefix}/"), format!("{prefix}/{{*rest}}")]
        }
    }
}

/// Whether a path matches one of the patterns: exactly, or as part of a prefix that ends in `/*`.
pub(crate) fn covers(patterns: &[String], path: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix("/*") {
        None => pattern == path,
        Some(prefix) => {
            path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn router(paths: &[&str]) -> Router {
        let mut router = Router::default();
        for path in paths {
            let route = Route {
                name: Arc::from(*path),
                template: Arc::from(*path),
                handler: Handler::Live,
                access: Access::default(),
                open: false,
                is_administration: false,
            };
            router.add(route).unwrap();
        }
        router
    }

    #[test]
    fn the_most_specific_route_is_found() {
        let router = router(&["/health", "/smoke/*", "/smoke/get", "/v1/budget/{tenant}", "/*"]);
        for (path, template, parameter) in [
            ("/health", "/health", None),
            ("/smoke", "/smoke/*", None),
            ("/smoke/", "/smoke/*", None),
            ("/smoke/a/b", "/smoke/*", Some("a/b")),
            ("/smoke/get", "/smoke/get", None),
            ("/v1/budget/retail", "/v1/budget/{tenant}", Some("retail")),
            ("/healthy", "/*", Some("healthy")),
            ("/", "/*", None),
        ] {
            let (route, found) = router.find(path).unwrap();
            assert_eq!((&*route.template, found.as_deref()), (template, parameter), "{path}");
        }
    }

    #[test]
    fn a_path_is_covered_exactly_or_by_its_prefix() {
        let open = ["/health".to_owned(), "/admin/*".to_owned()];
        for (path, covered) in [
            ("/health", true),
            ("/health/live", false),
            ("/admin", true),
            ("/admin/build", true),
            ("/administrator", false),
        ] {
            assert_eq!(covers(&open, path), covered, "{path}");
        }
    }
}

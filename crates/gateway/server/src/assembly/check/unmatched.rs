//! Rules that can never match. They are mistakes, because their author expects them to apply.

use std::collections::BTreeSet;

use super::{Check, builtin_routes};
use crate::assembly::router::covers;
use crate::assembly::spec::Spec;
use crate::config::route::RouteSpec;
use crate::layers::auth::{AuthSpec, KeySpec};

/// The tenant of a key for all tenants.
const ANY: &str = "*";

impl Check {
    /// Rejects rules that can never match.
    pub(super) fn unmatched(&mut self, spec: &Spec) {
        if let Some(auth) = &spec.auth {
            for route in &spec.routes {
                self.unmatched_keys(route, auth);
            }
            self.unmatched_tenants(spec, auth);
        }
        let default = Spec::default().open;
        for path in spec.open.iter().filter(|path| !default.contains(path)) {
            let only = std::slice::from_ref(path);
            let covers_one = spec.routes.iter().any(|route| covers(only, &route.path))
                || builtin_routes(spec).iter().any(|(route, _)| covers(only, route));
            self.require(
                covers_one,
                &format!("open: `{path}` covers no route: write the path of a route, or PREFIX/*"),
            );
        }
    }

    /// Consumers and scopes of a route that no key has.
    fn unmatched_keys(&mut self, route: &RouteSpec, auth: &AuthSpec) {
        let names: Vec<&str> = auth.keys.iter().map(|key| key.name.as_str()).collect();
        for consumer in route.consumers.iter().filter(|name| !names.contains(&name.as_str())) {
            self.require(
                false,
                &format!(
                    "route `{}`: `consumers` has `{consumer}`, but the keys of `auth` are: {}",
                    route.name,
                    names.join(", ")
                ),
            );
        }
        if let Some(scope) = &route.scope {
            // A key without scopes has all.
            let has = |key: &KeySpec| key.scopes.is_empty() || key.scopes.contains(scope);
            self.require(
                auth.keys.is_empty() || auth.keys.iter().any(has),
                &format!("route `{}`: no key of `auth` has the scope `{scope}`", route.name),
            );
        }
    }

    /// Tenants of budgets and of tools that no key can have. If a header or a token names the
    /// tenant, any name is possible.
    fn unmatched_tenants(&mut self, spec: &Spec, auth: &AuthSpec) {
        let is_named = spec.tenant.as_ref().is_none_or(|tenant| tenant.claim.is_some());
        let known: BTreeSet<&str> =
            auth.keys.iter().filter_map(|key| key.tenant.as_deref()).collect();
        if is_named || known.contains(ANY) {
            return;
        }
        let budgets = spec.budgets.iter().flat_map(|budgets| budgets.tenants.keys());
        let lists = spec.tools.iter().flat_map(|tools| tools.allow.keys());
        let named = budgets.map(|name| ("budgets: `tenants`", name));
        for (place, name) in named.chain(lists.map(|name| ("tools: `allow`", name))) {
            self.require(
                name == ANY || known.contains(name.as_str()),
                &format!("{place} has `{name}`, but no key of `auth` has this tenant"),
            );
        }
    }
}

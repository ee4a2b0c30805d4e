//! The output of `show` is a valid profile.

use std::path::Path;

use plimsoll_plan::Plan;
use plimsoll_profile::{EnvVars, Overrides, Profile, Purpose, builtin_names, load, show};

use crate::support::base_with;

fn shown(profile: &Profile) -> String {
    show(profile, &EnvVars::default(), &Overrides::default()).unwrap()
}

fn checked(profile: &Profile) -> Plan {
    load(profile, &EnvVars::default(), &Overrides::default(), Purpose::Check).unwrap()
}

fn again(text: &str) -> Profile {
    Profile::new(Path::new("shown.yaml"), text.as_bytes().to_vec())
}

#[test]
fn what_is_shown_of_every_built_in_profile_is_the_same_plan_again() {
    for name in builtin_names() {
        let profile = Profile::open(name).unwrap();
        let text = shown(&profile);
        let (plan, second) = (checked(&profile), checked(&again(&text)));
        // Both outputs have redacted credentials, so the rest must be equal.
        assert_eq!(
            serde_json::to_value(&plan).unwrap(),
            serde_json::to_value(&second).unwrap(),
            "{name}:\n{text}"
        );
        assert_eq!(shown(&again(&text)), text, "{name}");
        assert!(text.starts_with(&format!("# plimsoll {}", plan.tool_version)), "{text}");
    }
}

#[test]
fn dollars_queries_and_names_survive_and_credentials_do_not() {
    let text = base_with(
        "key: sk-1234\nheaders: {x-any: opaque, accept: a/b}\n\
         scenarios: [{protocol: http, http: {path: '/a?sig=opaque&limit=5', body: 'cost $$5'}}, {turns: 2}]",
    );
    let profile = Profile::new(Path::new("p.yaml"), text.into_bytes());
    let text = shown(&profile);
    assert!(!text.contains("opaque") && !text.contains("sk-1234"), "{text}");
    let plan = checked(&again(&text));
    let http = plan.scenarios[0].http.as_ref().unwrap();
    assert_eq!((http.body.as_str(), http.path.as_str()), ("cost $5", "/a?sig=<redacted>&limit=5"));
    assert_eq!(plan.targets[0].headers["accept"].reveal(), "a/b");
    let names: Vec<_> = plan.scenarios.iter().map(|s| (s.name.as_str(), s.turns)).collect();
    assert_eq!(names, [("scenario-1", 1), ("scenario-2", 2)]);
}

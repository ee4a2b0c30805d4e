//! No output contains credentials, whatever their source and whether or not they are valid.

use crate::support::{base_with, resolve};
use plimsoll_profile::{EnvVars, Overrides, Profile, parse};
use proptest::prelude::*;

/// A profile with the secret in every possible place.
fn carrying(secret: &str) -> String {
    base_with(&format!(
        "key: '{secret}'
target: 'https://host/p?x={secret}'
headers: {{Authorization: 'Bearer {secret}', X-Api-Key: '{secret}', cookie: 'session={secret}', x-tenant: '{secret}'}}
scenarios:
  - {{headers: {{x-auth-token: '{secret}'}}}}
  - {{protocol: http, http: {{path: '/a?x={secret}', headers: {{Proxy-Authorization: '{secret}', x-harmless: '{secret}'}}}}}}
"
    ))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    #[test]
    fn a_plan_shows_no_secret(secret in "sk-[a-zA-Z0-9]{12,40}") {
        let flags = Overrides {
            sets: vec![format!("scenarios.0.headers.api-secret={secret}")],
            headers: vec![format!("apikey: {secret}")],
            ..Overrides::default()
        };
        let plan = resolve(&carrying(&secret), &[], &flags).unwrap();
        prop_assert_eq!(plan.targets[0].key.as_ref().unwrap().reveal(), secret.as_str());
        prop_assert_eq!(plan.targets[0].headers["apikey"].reveal(), secret.as_str());
        prop_assert_eq!(&plan.scenarios[0].headers["x-auth-token"], &secret);
        let outputs = [
            format!("{plan:?} {plan:#?} {:?}", plan.targets),
            serde_json::to_string(&plan).unwrap(),
            format!("{flags:?}"),
            format!("{:?}", parse(carrying(&secret).as_bytes()).unwrap()),
            format!("{:?}", Profile::new("p.yaml".as_ref(), carrying(&secret).into_bytes())),
            format!("{:?}", EnvVars::from_iter([("KEY".to_owned(), secret.clone())])),
        ];
        for output in outputs {
            prop_assert!(!output.contains(&secret), "{}", output);
        }
    }

    #[test]
    fn a_problem_shows_no_secret(secret in "[a-zA-Z0-9]{12,40}", digits in "[1-9][0-9]{11,15}") {
        let texts = [
            base_with(&format!("key: [{secret}]")),
            base_with(&format!("key: {digits}")),
            base_with(&format!("key: {{of: {secret}}}")),
            base_with(&format!("key: \"{secret}\\n\"")),
            base_with(&format!("key: REPLACE_{secret}")),
            base_with(&format!("headers: {{authorization: [{secret}]}}")),
            base_with(&format!("headers: {{authorization: \"{secret}\\r\"}}")),
            base_with(&format!("target: http://user:{secret}@host")),
            base_with(&format!("key: {secret}: x")),
            base_with(&format!("key: @{secret}")),
            base_with(&format!("key: '{secret}")),
            format!("{{\"key\": \"{secret}\" x}}"),
            format!("{{\"key\": {secret}}}"),
        ];
        for text in texts {
            let problems = resolve(&text, &[], &Overrides::default()).unwrap_err();
            let message = format!("{problems} {problems:?}");
            prop_assert!(!message.contains(&secret) && !message.contains(&digits), "{}", message);
        }
    }

    #[test]
    fn a_flag_or_variable_that_is_wrong_shows_no_secret(secret in "[a-zA-Z0-9]{12,40}") {
        let flags = Overrides {
            sets: vec![format!("headers.x-api-key={secret}\n"), format!("keey={secret}")],
            headers: vec![secret.clone()],
            ..Overrides::default()
        };
        let key = format!("{secret}\n");
        let problems = resolve(&base_with(""), &[("PLIMSOLL_KEY", &key)], &flags).unwrap_err();
        let message = format!("{problems} {problems:?}");
        prop_assert_eq!(problems.len(), 4, "{}", message);
        prop_assert!(!message.contains(&secret), "{}", message);
    }
}

//! Ready-made configurations: interface and defaults of the gateways that people measure.

/// A ready-made configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Persona {
    /// Its name.
    pub name: &'static str,
    /// The configuration, YAML.
    pub text: &'static str,
}

/// All of them.
pub const PERSONAS: [Persona; 5] = [
    Persona { name: "baseline", text: include_str!("../personas/baseline.yaml") },
    Persona { name: "layers", text: include_str!("../personas/layers.yaml") },
    Persona { name: "policy", text: include_str!("../personas/policy.yaml") },
    Persona { name: "proxy", text: include_str!("../personas/proxy.yaml") },
    Persona { name: "llm", text: include_str!("../personas/llm.yaml") },
];

impl Persona {
    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        PERSONAS.into_iter().find(|persona| persona.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Spec;

    #[test]
    fn every_persona_is_a_configuration_that_makes_sense_and_bears_its_name() {
        for persona in PERSONAS {
            let spec = Spec::from_yaml(persona.text).unwrap();
            spec.check().unwrap();
            assert_eq!(spec.name, persona.name);
        }
    }
}

//! Base URLs of the providers, in the configuration under the identifier of each.

use std::fmt;

use rb_wire::providers::{PROVIDERS, Provider};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

/// Base URL of each provider: scheme and host, and a path where all of its paths begin with one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrls([String; PROVIDERS.len()]);

impl Default for BaseUrls {
    fn default() -> Self {
        Self(PROVIDERS.each_ref().map(|provider| provider.default_base_url.to_owned()))
    }
}

impl BaseUrls {
    /// Returns every provider with its base URL.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Provider, &str)> {
        PROVIDERS.iter().zip(self.0.iter().map(String::as_str))
    }

    /// Returns the base URL of a provider.
    pub fn get(&self, id: &str) -> Option<&str> {
        self.iter().find(|(provider, _)| provider.id == id).map(|(_, base_url)| base_url)
    }

    /// Sets the base URL of a provider, and returns whether there is one with this identifier.
    pub fn set(&mut self, id: &str, base_url: &str) -> bool {
        let found = PROVIDERS.iter().zip(&mut self.0).find(|(provider, _)| provider.id == id);
        found.map(|(_, own)| base_url.clone_into(own)).is_some()
    }
}

impl<'de> Deserialize<'de> for BaseUrls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(BaseUrlsVisitor)
    }
}

struct BaseUrlsVisitor;

impl<'de> Visitor<'de> for BaseUrlsVisitor {
    type Value = BaseUrls;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("settings of the gateway")
    }

    /// Reads the keys that are no other setting of the gateway, so an unknown one is an error.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<BaseUrls, A::Error> {
        let mut base_urls = BaseUrls::default();
        while let Some(key) = map.next_key::<String>()? {
            if base_urls.get(&key).is_none() {
                return Err(A::Error::custom(format!("unknown field `{key}` in `gateway`")));
            }
            base_urls.set(&key, &map.next_value::<String>()?);
        }
        Ok(base_urls)
    }
}

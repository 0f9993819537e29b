//! The root certificates that servers are checked against: the system's, or those that the user
//! names.

use std::path::{Path, PathBuf};

use rustls_native_certs::{CertificateResult, load_certs_from_paths, load_native_certs};
use ureq::tls::{Certificate, RootCerts};

use crate::NetworkError;

/// The sources of root certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateSources {
    /// `SSL_CERT_FILE`: instead of the system's.
    pub file: Option<PathBuf>,
    /// `SSL_CERT_DIR`: instead of the system's.
    pub directories: Vec<PathBuf>,
    /// `network.ca_file`: in addition to the others.
    pub ca_file: Option<PathBuf>,
}

/// Certificates that were loaded.
#[derive(Clone, Debug)]
pub struct TrustedRoots {
    pub(crate) roots: RootCerts,
    /// The number of certificates, or `None` if the built-in ones are used.
    pub count: Option<usize>,
    /// Their source, in words.
    pub origin: String,
}

impl CertificateSources {
    pub(crate) fn load(&self) -> Result<TrustedRoots, NetworkError> {
        let (mut found, mut origin) = self.load_named()?;
        if found.is_empty() && self.ca_file.is_none() {
            // A minimal container has no certificates. This program contains the list of Mozilla.
            let origin = "the list of Mozilla in this program: the system has none".to_owned();
            return Ok(TrustedRoots { roots: RootCerts::WebPki, count: None, origin });
        }
        if let Some(path) = &self.ca_file {
            found.extend(from_file(path, "network.ca_file")?);
            origin.push_str(&format!(" and {}", path.display()));
        }
        let count = Some(found.len());
        Ok(TrustedRoots { roots: RootCerts::from(found), count, origin })
    }

    /// Loads the certificates of `SSL_CERT_FILE` and `SSL_CERT_DIR`, or the system's if neither is
    /// set.
    fn load_named(&self) -> Result<(Vec<Certificate<'static>>, String), NetworkError> {
        if self.file.is_none() && self.directories.is_empty() {
            return Ok((certificates(&load_native_certs()), "the system".to_owned()));
        }
        let (mut found, mut places) = (Vec::new(), Vec::new());
        if let Some(path) = &self.file {
            found.extend(from_file(path, "SSL_CERT_FILE")?);
            places.push(format!("{} (SSL_CERT_FILE)", path.display()));
        }
        for path in &self.directories {
            if !path.is_dir() {
                let why = "it is not a directory that can be read".to_owned();
                let name = "SSL_CERT_DIR".to_owned();
                return Err(NetworkError::Certificates { name, path: path.clone(), why });
            }
            found.extend(certificates(&load_certs_from_paths(None, Some(path))));
            places.push(format!("{} (SSL_CERT_DIR)", path.display()));
        }
        if found.is_empty() {
            let path = self.directories.first().cloned().unwrap_or_default();
            let why = "there is no certificate in it".to_owned();
            return Err(NetworkError::Certificates { name: "SSL_CERT_DIR".to_owned(), path, why });
        }
        Ok((found, places.join(" and ")))
    }
}

/// Returns only the certificates of a file.
pub(crate) fn only(path: &Path) -> Result<RootCerts, NetworkError> {
    Ok(RootCerts::from(from_file(path, "the certificates")?))
}

/// Loads the certificates of a file, at least one.
fn from_file(path: &Path, name: &str) -> Result<Vec<Certificate<'static>>, NetworkError> {
    let wrong = |why: String| NetworkError::Certificates {
        name: name.to_owned(),
        path: path.to_owned(),
        why,
    };
    if let Err(error) = std::fs::File::open(path) {
        return Err(wrong(error.to_string()));
    }
    let found = certificates(&load_certs_from_paths(Some(path), None));
    if found.is_empty() {
        return Err(wrong("there is no certificate in it (PEM is read)".to_owned()));
    }
    Ok(found)
}

fn certificates(loaded: &CertificateResult) -> Vec<Certificate<'static>> {
    loaded.certs.iter().map(|found| Certificate::from_der(found).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_file_without_certificates_is_an_error_with_its_path() {
        let directory = tempfile::tempdir().unwrap();
        let empty = directory.path().join("empty.pem");
        std::fs::write(&empty, "nothing\n").unwrap();
        let missing = directory.path().join("missing.pem");
        for path in [&empty, &missing] {
            let file = CertificateSources { file: Some(path.clone()), ..Default::default() };
            let extra = CertificateSources { ca_file: Some(path.clone()), ..Default::default() };
            let sets = [(file, "SSL_CERT_FILE"), (extra, "network.ca_file")];
            for (sources, name) in sets {
                let error = sources.load().map(drop).unwrap_err().to_string();
                assert!(error.contains(name), "{error}");
                assert!(error.contains(&path.display().to_string()), "{error}");
            }
        }
        let directories = vec![directory.path().to_owned()];
        let sources = CertificateSources { directories, ..Default::default() };
        assert!(sources.load().map(drop).unwrap_err().to_string().contains("SSL_CERT_DIR"));
    }
}

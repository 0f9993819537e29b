//! hookloop behind a company's proxy: a proxy that records requests, and servers with certificates
//! of a private authority.

mod certificates;
mod doctor;
mod proxy;
mod servers;

"""Authorities and certificates for tests, made on the spot."""

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Signs certificates, and writes the three files that a node needs."""

    def __init__(self, folder, name="authority"):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._certificate = self._signed(self._name, self._key, [], is_authority=True)
        self.file = folder / "authority.pem"
        self.file.write_bytes(_pem(self._certificate))

    def sign(self, cluster, who="node"):
        """The files of a node: certificate, key, authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, who)])
        certificate = self._signed(name, key, [cluster], is_authority=False)
        files = self.folder / f"{who}.pem", self.folder / f"{who}.key"
        files[0].write_bytes(_pem(certificate))
        files[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return (*files, self.file)

    def _signed(self, name, key, dns_names, *, is_authority):
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=24))
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        )
        if dns_names:
            names = x509.SubjectAlternativeName([x509.DNSName(each) for each in dns_names])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _pem(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM)

"""The user writes options once, in the Java client's words; both clients understand them alike."""

import pytest

from springhouse.errors import SpringhouseError
from springhouse.project.options.kafka_options import client_settings


def test_what_both_clients_call_the_same_is_passed_on() -> None:
    options = {
        "kafka.bootstrap.servers": "a:9092,b:9092",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "minPartitions": "8",
    }
    assert client_settings(options) == {
        "bootstrap.servers": "a:9092,b:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
    }


def test_certificates_in_pem_files_are_named_for_the_other_client() -> None:
    options = {
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": "ca.pem",
        "kafka.ssl.keystore.type": "pem",
        "kafka.ssl.keystore.location": "me.pem",
        "kafka.ssl.key.password": "secret",
    }
    assert client_settings(options) == {
        "ssl.key.password": "secret",
        "ssl.ca.location": "ca.pem",
        "ssl.certificate.location": "me.pem",
        "ssl.key.location": "me.pem",
    }


def test_a_name_and_a_password_are_found_in_the_login_module() -> None:
    login = r'org.Scram required username="jo" password="a \"quoted\" one";'
    settings = client_settings({"kafka.sasl.jaas.config": login})
    assert settings == {"sasl.username": "jo", "sasl.password": 'a "quoted" one'}


def test_a_key_store_that_only_java_can_read_is_refused() -> None:
    with pytest.raises(SpringhouseError, match="is a Java key store") as error:
        client_settings({"kafka.ssl.truststore.location": "trust.jks"})
    assert "kafka.ssl.truststore.type = 'PEM'" in (error.value.hint or "")

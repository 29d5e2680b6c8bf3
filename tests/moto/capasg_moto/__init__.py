"""moto as the AWS of `make road`: its server, with corrections where it differs from what AWS documents."""

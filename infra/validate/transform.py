"""Prints template.yaml as the SAM transform leaves it: what CloudFormation really deploys, and what cfn-lint sees no fault of beforehand."""

import json
import os
import sys

os.environ.setdefault("AWS_DEFAULT_REGION", "eu-central-1")  # the translator wants a region, the result holds none

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

PLACE = "s3://bucket/key"  # `sam package` uploads local files and writes their places; the transform refuses local paths


class NoManagedPolicies:
    """Every role of the template is written out, so no managed policy has to be looked up in IAM."""

    def load(self):
        return {}


def main(path):
    with open(path, encoding="utf-8") as file:
        template = yaml_parse(file.read())
    template["Globals"]["Function"]["CodeUri"] = PLACE
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::StateMachine":
            resource["Properties"]["DefinitionUri"] = PLACE
    json.dump(transform(template, {}, NoManagedPolicies()), sys.stdout, indent=1)


if __name__ == "__main__":
    main(sys.argv[1])

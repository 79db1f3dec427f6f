"""The messages of gnostic's openapi.v3 package as facts; ``gnostic`` says how they read.

Source: google/gnostic-models openapiv3/OpenAPIv3.proto. Any, and the two types that Go treats by hand
(DefaultType, AdditionalPropertiesItem), are listed for their field numbers.
"""

from __future__ import annotations

from typing import Final

FACTS: Final = {
    "AdditionalPropertiesItem": "1 =schema_or_reference @Schema, 2 =boolean bool",
    "Any": "2 =yaml string",
    "AnyOrExpression": "1 =any Any, 2 =expression {Any}",
    "Callback": "1 ^ {PathItem}, 2 ^x- {Any}",
    "Components": (
        "1 schemas {@Schema}, 2 responses {@Response}, 3 parameters {@Parameter}, "
        "4 examples {@Example}, 5 requestBodies {@RequestBody}, 6 headers {@Header}, "
        "7 securitySchemes {@SecurityScheme}, 8 links {@Link}, 9 callbacks {@Callback}, 10 ^x- {Any}"
    ),
    "Contact": "1 name string, 2 url string, 3 email string, 4 ^x- {Any}",
    "DefaultType": "1 =number double, 2 =boolean bool, 3 =string string",
    "Discriminator": "1 propertyName! string, 2 mapping {string}, 3 ^x- {Any}",
    "Document": (
        "1 openapi! string, 2 info! Info, 3 servers [Server], 4 paths! Paths, 5 components Components, "
        "6 security [{StringArray}], 7 tags [Tag], 8 externalDocs ExternalDocs, 9 ^x- {Any}"
    ),
    "Encoding": (
        "1 contentType string, 2 headers {@Header}, 3 style string, 4 explode bool, "
        "5 allowReserved bool, 6 ^x- {Any}"
    ),
    "Example": "1 summary string, 2 description string, 3 value Any, 4 externalValue string, 5 ^x- {Any}",
    "ExternalDocs": "1 description string, 2 url! string, 3 ^x- {Any}",
    "Header": (
        "1 description string, 2 required bool, 3 deprecated bool, 4 allowEmptyValue bool, "
        "5 style string, 6 explode bool, 7 allowReserved bool, 8 schema @Schema, 9 example Any, "
        "10 examples {@Example}, 11 content {MediaType}, 12 ^x- {Any}"
    ),
    "Info": (
        "1 title! string, 2 description string, 3 termsOfService string, 4 contact Contact, "
        "5 license License, 6 version! string, 7 ^x- {Any}, 8 summary string"
    ),
    "ItemsItem": "1 =schema_or_reference [@Schema]",
    "License": "1 name! string, 2 url string, 3 ^x- {Any}",
    "Link": (
        "1 operationRef string, 2 operationId string, 3 parameters AnyOrExpression, "
        "4 requestBody AnyOrExpression, 5 description string, 6 server Server, 7 ^x- {Any}"
    ),
    "MediaType": (
        "1 schema @Schema, 2 example Any, 3 examples {@Example}, 4 encoding {Encoding}, 5 ^x- {Any}"
    ),
    "OauthFlow": (
        "1 authorizationUrl string, 2 tokenUrl string, 3 refreshUrl string, 4 scopes {string}, 5 ^x- {Any}"
    ),
    "OauthFlows": (
        "1 implicit OauthFlow, 2 password OauthFlow, 3 clientCredentials OauthFlow, "
        "4 authorizationCode OauthFlow, 5 ^x- {Any}"
    ),
    "Operation": (
        "1 tags [string], 2 summary string, 3 description string, 4 externalDocs ExternalDocs, "
        "5 operationId string, 6 parameters [@Parameter], 7 requestBody @RequestBody, "
        "8 responses! Responses, 9 callbacks {@Callback}, 10 deprecated bool, "
        "11 security [{StringArray}], 12 servers [Server], 13 ^x- {Any}"
    ),
    "Parameter": (
        "1 name! string, 2 in! string, 3 description string, 4 required bool, 5 deprecated bool, "
        "6 allowEmptyValue bool, 7 style string, 8 explode bool, 9 allowReserved bool, "
        "10 schema @Schema, 11 example Any, 12 examples {@Example}, 13 content {MediaType}, "
        "14 ^x- {Any}"
    ),
    "PathItem": (
        "1 $ref string, 2 summary string, 3 description string, 4 get Operation, 5 put Operation, "
        "6 post Operation, 7 delete Operation, 8 options Operation, 9 head Operation, "
        "10 patch Operation, 11 trace Operation, 12 servers [Server], 13 parameters [@Parameter], "
        "14 ^x- {Any}"
    ),
    "Paths": "1 ^/ {PathItem}, 2 ^x- {Any}",
    "Reference": "1 $ref! string, 2 summary string, 3 description string",
    "RequestBody": "1 description string, 2 content! {MediaType}, 3 required bool, 4 ^x- {Any}",
    "Response": (
        "1 description! string, 2 headers {@Header}, 3 content {MediaType}, 4 links {@Link}, 5 ^x- {Any}"
    ),
    "Responses": "1 default @Response, 2 ^[0-9X]{3}$ {@Response}, 3 ^x- {Any}",
    "Schema": (
        "1 nullable bool, 2 discriminator Discriminator, 3 readOnly bool, 4 writeOnly bool, 5 xml Xml, "
        "6 externalDocs ExternalDocs, 7 example Any, 8 deprecated bool, 9 title string, "
        "10 multipleOf double, 11 maximum double, 12 exclusiveMaximum bool, 13 minimum double, "
        "14 exclusiveMinimum bool, 15 maxLength int64, 16 minLength int64, 17 pattern string, "
        "18 maxItems int64, 19 minItems int64, 20 uniqueItems bool, 21 maxProperties int64, "
        "22 minProperties int64, 23 required [string], 24 enum [Any], 25 type string, "
        "26 allOf [@Schema], 27 oneOf [@Schema], 28 anyOf [@Schema], 29 not Schema, "
        "30 items ItemsItem, 31 properties {@Schema}, "
        "32 additionalProperties AdditionalPropertiesItem, 33 default DefaultType, "
        "34 description string, 35 format string, 36 ^x- {Any}"
    ),
    "SecurityScheme": (
        "1 type! string, 2 description string, 3 name string, 4 in string, 5 scheme string, "
        "6 bearerFormat string, 7 flows OauthFlows, 8 openIdConnectUrl string, 9 ^x- {Any}"
    ),
    "Server": "1 url! string, 2 description string, 3 variables {ServerVariable}, 4 ^x- {Any}",
    "ServerVariable": "1 enum [string], 2 default! string, 3 description string, 4 ^x- {Any}",
    "StringArray": "1 =value [string]",
    "Tag": "1 name! string, 2 description string, 3 externalDocs ExternalDocs, 4 ^x- {Any}",
    "Xml": (
        "1 name string, 2 namespace string, 3 prefix string, 4 attribute bool, 5 wrapped bool, 6 ^x- {Any}"
    ),
}

"""The messages of gnostic's openapi.v2 package as facts; ``gnostic`` says how they read.

Source: google/gnostic-models openapiv2/OpenAPIv2.proto.
"""

from __future__ import annotations

from typing import Final

FACTS: Final = {
    "AdditionalPropertiesItem": "1 =schema Schema, 2 =boolean bool",
    "Any": "2 =yaml string",
    "ApiKeySecurity": "1 type! string, 2 name! string, 3 in! string, 4 description string, 5 ^x- {Any}",
    "BasicAuthenticationSecurity": "1 type! string, 2 description string, 3 ^x- {Any}",
    "BodyParameter": (
        "1 description string, 2 name! string, 3 in! string, 4 required bool, 5 schema! Schema, 6 ^x- {Any}"
    ),
    "Contact": "1 name string, 2 url string, 3 email string, 4 ^x- {Any}",
    "Document": (
        "1 swagger! string, 2 info! Info, 3 host string, 4 basePath string, 5 schemes [string], "
        "6 consumes [string], 7 produces [string], 8 paths! Paths, 9 definitions {Schema}, "
        "10 parameters {Parameter}, 11 responses {Response}, 12 security [{StringArray}], "
        "13 securityDefinitions {SecurityDefinitionsItem}, 14 tags [Tag], "
        "15 externalDocs ExternalDocs, 16 ^x- {Any}"
    ),
    "ExternalDocs": "1 description string, 2 url! string, 3 ^x- {Any}",
    "FileSchema": (
        "1 format string, 2 title string, 3 description string, 4 default Any, 5 required [string], "
        "6 type! string, 7 readOnly bool, 8 externalDocs ExternalDocs, 9 example Any, 10 ^x- {Any}"
    ),
    "FormDataParameterSubSchema": (
        "1 required bool, 2 in string, 3 description string, 4 name string, 5 allowEmptyValue bool, "
        "6 type string, 7 format string, 8 items PrimitivesItems, 9 collectionFormat string, "
        "10 default Any, 11 maximum double, 12 exclusiveMaximum bool, 13 minimum double, "
        "14 exclusiveMinimum bool, 15 maxLength int64, 16 minLength int64, 17 pattern string, "
        "18 maxItems int64, 19 minItems int64, 20 uniqueItems bool, 21 enum [Any], "
        "22 multipleOf double, 23 ^x- {Any}"
    ),
    "Header": (
        "1 type! string, 2 format string, 3 items PrimitivesItems, 4 collectionFormat string, "
        "5 default Any, 6 maximum double, 7 exclusiveMaximum bool, 8 minimum double, "
        "9 exclusiveMinimum bool, 10 maxLength int64, 11 minLength int64, 12 pattern string, "
        "13 maxItems int64, 14 minItems int64, 15 uniqueItems bool, 16 enum [Any], "
        "17 multipleOf double, 18 description string, 19 ^x- {Any}"
    ),
    "HeaderParameterSubSchema": (
        "1 required bool, 2 in string, 3 description string, 4 name string, 5 type string, "
        "6 format string, 7 items PrimitivesItems, 8 collectionFormat string, 9 default Any, "
        "10 maximum double, 11 exclusiveMaximum bool, 12 minimum double, 13 exclusiveMinimum bool, "
        "14 maxLength int64, 15 minLength int64, 16 pattern string, 17 maxItems int64, "
        "18 minItems int64, 19 uniqueItems bool, 20 enum [Any], 21 multipleOf double, 22 ^x- {Any}"
    ),
    "Info": (
        "1 title! string, 2 version! string, 3 description string, 4 termsOfService string, "
        "5 contact Contact, 6 license License, 7 ^x- {Any}"
    ),
    "ItemsItem": "1 =schema [Schema]",
    "JsonReference": "1 $ref! string, 2 description string",
    "License": "1 name! string, 2 url string, 3 ^x- {Any}",
    "NonBodyParameter": (
        "1 =header_parameter_sub_schema HeaderParameterSubSchema, "
        "2 =form_data_parameter_sub_schema FormDataParameterSubSchema, "
        "3 =query_parameter_sub_schema QueryParameterSubSchema, "
        "4 =path_parameter_sub_schema PathParameterSubSchema"
    ),
    "Oauth2AccessCodeSecurity": (
        "1 type! string, 2 flow! string, 3 scopes {string}, 4 authorizationUrl! string, "
        "5 tokenUrl! string, 6 description string, 7 ^x- {Any}"
    ),
    "Oauth2ApplicationSecurity": (
        "1 type! string, 2 flow! string, 3 scopes {string}, 4 tokenUrl! string, 5 description string, "
        "6 ^x- {Any}"
    ),
    "Oauth2ImplicitSecurity": (
        "1 type! string, 2 flow! string, 3 scopes {string}, 4 authorizationUrl! string, "
        "5 description string, 6 ^x- {Any}"
    ),
    "Oauth2PasswordSecurity": (
        "1 type! string, 2 flow! string, 3 scopes {string}, 4 tokenUrl! string, 5 description string, "
        "6 ^x- {Any}"
    ),
    "Operation": (
        "1 tags [string], 2 summary string, 3 description string, 4 externalDocs ExternalDocs, "
        "5 operationId string, 6 produces [string], 7 consumes [string], "
        "8 parameters [ParametersItem], 9 responses! Responses, 10 schemes [string], "
        "11 deprecated bool, 12 security [{StringArray}], 13 ^x- {Any}"
    ),
    "Parameter": "1 =body_parameter BodyParameter, 2 =non_body_parameter NonBodyParameter",
    "ParametersItem": "1 =parameter Parameter, 2 =json_reference JsonReference",
    "PathItem": (
        "1 $ref string, 2 get Operation, 3 put Operation, 4 post Operation, 5 delete Operation, "
        "6 options Operation, 7 head Operation, 8 patch Operation, 9 parameters [ParametersItem], "
        "10 ^x- {Any}"
    ),
    "PathParameterSubSchema": (
        "1 required! bool, 2 in string, 3 description string, 4 name string, 5 type string, "
        "6 format string, 7 items PrimitivesItems, 8 collectionFormat string, 9 default Any, "
        "10 maximum double, 11 exclusiveMaximum bool, 12 minimum double, 13 exclusiveMinimum bool, "
        "14 maxLength int64, 15 minLength int64, 16 pattern string, 17 maxItems int64, "
        "18 minItems int64, 19 uniqueItems bool, 20 enum [Any], 21 multipleOf double, 22 ^x- {Any}"
    ),
    "Paths": "1 ^x- {Any}, 2 ^/ {PathItem}",
    "PrimitivesItems": (
        "1 type string, 2 format string, 3 items PrimitivesItems, 4 collectionFormat string, "
        "5 default Any, 6 maximum double, 7 exclusiveMaximum bool, 8 minimum double, "
        "9 exclusiveMinimum bool, 10 maxLength int64, 11 minLength int64, 12 pattern string, "
        "13 maxItems int64, 14 minItems int64, 15 uniqueItems bool, 16 enum [Any], "
        "17 multipleOf double, 18 ^x- {Any}"
    ),
    "QueryParameterSubSchema": (
        "1 required bool, 2 in string, 3 description string, 4 name string, 5 allowEmptyValue bool, "
        "6 type string, 7 format string, 8 items PrimitivesItems, 9 collectionFormat string, "
        "10 default Any, 11 maximum double, 12 exclusiveMaximum bool, 13 minimum double, "
        "14 exclusiveMinimum bool, 15 maxLength int64, 16 minLength int64, 17 pattern string, "
        "18 maxItems int64, 19 minItems int64, 20 uniqueItems bool, 21 enum [Any], "
        "22 multipleOf double, 23 ^x- {Any}"
    ),
    "Response": (
        "1 description! string, 2 schema SchemaItem, 3 headers {Header}, 4 examples {Any}, 5 ^x- {Any}"
    ),
    "ResponseValue": "1 =response Response, 2 =json_reference JsonReference",
    "Responses": "1 ^([0-9]{3}|default)$ {ResponseValue}, 2 ^x- {Any}",
    "Schema": (
        "1 $ref string, 2 format string, 3 title string, 4 description string, 5 default Any, "
        "6 multipleOf double, 7 maximum double, 8 exclusiveMaximum bool, 9 minimum double, "
        "10 exclusiveMinimum bool, 11 maxLength int64, 12 minLength int64, 13 pattern string, "
        "14 maxItems int64, 15 minItems int64, 16 uniqueItems bool, 17 maxProperties int64, "
        "18 minProperties int64, 19 required [string], 20 enum [Any], "
        "21 additionalProperties AdditionalPropertiesItem, 22 type TypeItem, 23 items ItemsItem, "
        "24 allOf [Schema], 25 properties {Schema}, 26 discriminator string, 27 readOnly bool, "
        "28 xml Xml, 29 externalDocs ExternalDocs, 30 example Any, 31 ^x- {Any}"
    ),
    "SchemaItem": "1 =schema Schema, 2 =file_schema FileSchema",
    "SecurityDefinitionsItem": (
        "1 =basic_authentication_security BasicAuthenticationSecurity, "
        "2 =api_key_security ApiKeySecurity, 3 =oauth2_implicit_security Oauth2ImplicitSecurity, "
        "4 =oauth2_password_security Oauth2PasswordSecurity, "
        "5 =oauth2_application_security Oauth2ApplicationSecurity, "
        "6 =oauth2_access_code_security Oauth2AccessCodeSecurity"
    ),
    "StringArray": "1 =value [string]",
    "Tag": "1 name! string, 2 description string, 3 externalDocs ExternalDocs, 4 ^x- {Any}",
    "TypeItem": "1 =value [string]",
    "Xml": (
        "1 name string, 2 namespace string, 3 prefix string, 4 attribute bool, 5 wrapped bool, 6 ^x- {Any}"
    ),
}

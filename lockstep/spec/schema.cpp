// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/schema.h"

#include <cmath>

#include "lockstep/base/text.h"

namespace lockstep::spec {
namespace {

using base::Json;

constexpr const char* kNumber = R"(\s*[0-9]+(\.[0-9]*)?\s*)";
constexpr const char* kByteUnit = "(B|[kKMGTP]B|[KMGTP]iB)";

const char* schema_type(Type type) {
  switch (type) {
    case Type::boolean:
      return "boolean";
    case Type::integer:
      return "integer";
    case Type::number:
      return "number";
    case Type::numbers:
    case Type::texts:
    case Type::values:
    case Type::sections:
      return "array";
    case Type::named_integers:
    case Type::named_numbers:
    case Type::named_texts:
    case Type::named_lists:
    case Type::section:
    case Type::named_sections:
    case Type::document:
      return "object";
    default:
      return "string";
  }
}

std::string quantity_pattern(Type type) {
  if (type == Type::bytes) return base::text("^", kNumber, kByteUnit, "\\s*$");
  if (type == Type::rate) return base::text("^", kNumber, "(", kByteUnit, "|[kMGT]?bit)/s\\s*$");
  return base::text("^(none|\\s*([0-9]+-)?[0-9]+:[0-5]?[0-9]:[0-5]?[0-9]\\s*|(", kNumber,
                    "(us|ms|s|sec|min|h|hours?|d|days?))+\\s*)$");
}

void add_range(Json& schema, const Check& check) {
  if (std::isfinite(check.low)) schema[check.low_open ? "exclusiveMinimum" : "minimum"] = check.low;
  if (std::isfinite(check.high)) schema[check.high_open ? "exclusiveMaximum" : "maximum"] = check.high;
}

Json object_schema(const Section& section);

Json named_schema(Type type) {
  Json schema = Json::object();
  if (type == Type::named_lists) {
    schema["type"] = "array";
    schema["items"]["type"] = "integer";
    return schema;
  }
  schema["type"] = type == Type::named_integers ? "integer" : type == Type::named_numbers ? "number" : "string";
  return schema;
}

bool has_names(Type type) {
  return type == Type::named_integers || type == Type::named_numbers || type == Type::named_texts ||
         type == Type::named_lists;
}

// Of a section, of a document inside the document.
Json nested_schema(const Field& field) {
  Json schema = object_schema(field.type == Type::document ? *field.inner : *field.section);
  schema["description"] = field.help;
  if (field.nullable) schema["type"] = Json::array({"object", "null"});
  if (field.absence != Absence::empty) return schema;
  Json nothing = Json::object();
  nothing["type"] = "object";
  nothing["maxProperties"] = 0;
  Json either = Json::object();
  either["anyOf"] = Json::array({nothing, schema});
  return either;
}

Json field_schema(const Section& owner, const Field& field) {
  if (field.type == Type::section || field.type == Type::document) return nested_schema(field);
  Json schema = Json::object();
  schema["type"] = schema_type(field.type);
  schema["description"] = field.unit.empty() ? field.help : base::text(field.help, " [", field.unit, "]");
  if (!owner.demands(field) && field.absence == Absence::none) schema["default"] = field.otherwise;
  if (field.type == Type::texts) {
    schema["type"] = Json::array({"string", "array"});
    schema["items"]["type"] = "string";
  }
  if (field.type == Type::image_size) {
    schema["type"] = Json::array({"integer", "array"});
    add_range(schema, field.check);
    schema["items"]["type"] = "integer";
    add_range(schema["items"], field.check);
    schema["minItems"] = schema["maxItems"] = int64_t{2};
  }
  if (field.type == Type::choice) schema["enum"] = Json::array_of(field.choices);
  if (field.type == Type::integer || field.type == Type::number) add_range(schema, field.check);
  if (field.type == Type::text && field.check.required) schema["minLength"] = 1;
  if (field.type == Type::duration || field.type == Type::bytes || field.type == Type::rate) {
    schema["pattern"] = quantity_pattern(field.type);
  }
  if (has_names(field.type)) schema["additionalProperties"] = named_schema(field.type);
  if (field.type == Type::sections) schema["items"] = object_schema(*field.section);
  if (field.type == Type::named_sections) schema["additionalProperties"] = object_schema(*field.section);
  if (field.type == Type::values) schema["items"]["type"] = Json::array({"string", "number", "boolean"});
  if (field.type == Type::numbers) {
    schema["items"]["type"] = "number";
    add_range(schema["items"], field.check);
    if (field.check.length > 0) schema["minItems"] = schema["maxItems"] = static_cast<int64_t>(field.check.length);
  }
  if (field.nullable) schema["type"] = Json::array({schema["type"], "null"});
  return schema;
}

// True of an object in which `field` is given and is not its default, 0 or an empty list.
Json stated_schema(const Field& field) {
  Json stated = Json::object();
  stated["required"] = Json::array({field.key});
  if (field.type == Type::sections) {
    stated["properties"][field.key]["minItems"] = 1;
  } else {
    stated["properties"][field.key]["not"]["const"] = field.otherwise;
  }
  return stated;
}

bool holds_required(const Section& section) {
  for (const auto& field : section.fields) {
    if (section.demands(field)) return true;
    if (field.type == Type::section && field.absence == Absence::none && holds_required(*field.section)) return true;
  }
  return !section.one_of.empty();
}

Json object_schema(const Section& section) {
  Json schema = Json::object();
  schema["type"] = "object";
  schema["description"] = section.help;
  schema["additionalProperties"] = false;
  Json needed = Json::array();
  Json& properties = schema["properties"] = Json::object();
  for (const auto& field : section.fields) {
    properties[field.key] = field_schema(section, field);
    const bool holds = field.type == Type::section && field.absence == Absence::none && holds_required(*field.section);
    if (section.demands(field) || holds) needed.push_back(field.key);
  }
  if (needed.size() > 0) schema["required"] = needed;
  for (const auto& key : section.one_of) schema["oneOf"].push_back(stated_schema(*section.find(key)));
  return schema;
}

// A job's training must have a length, unless it starts from weights, which bring a recipe (recipe.h).
void allow_bare_weights(Json& job) {
  Json& training = job["properties"]["training"];
  Json with_length = Json::object();
  with_length["required"] = Json::array({"training"});
  with_length["properties"]["training"]["oneOf"] = training.at("oneOf");
  training.erase("oneOf");
  Json needed = Json::array();
  for (const Json& key : job.at("required").items()) {
    if (key.as_string() != "training") needed.push_back(key);
  }
  job["required"] = std::move(needed);
  Json weights = Json::object();
  weights["required"] = Json::array({"weights"});
  weights["properties"]["weights"]["minLength"] = 1;
  job["if"]["properties"]["model"] = std::move(weights);
  job["else"] = std::move(with_length);
}

}  // namespace

Json json_schema(const Section& root) {
  Json schema = Json::object();
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = base::text("Lockstep ", root.name, " document");
  const Json body = object_schema(root);
  for (const auto& member : body.members()) schema[member.key] = member.value;
  schema["properties"]["$schema"]["type"] = "string";
  if (root.name == "job") allow_bare_weights(schema);
  return schema;
}

}  // namespace lockstep::spec

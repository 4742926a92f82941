// SPDX-License-Identifier: Apache-2.0
// Captions with soft attention (Xu et al. 2015, "Show, attend and tell", arXiv 1502.03044): a classifier's trunk up to
// its map of stride 16, whose cells are the places that are looked at, and an LSTM that says a word after the other.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/model/architecture.h"
#include "lockstep/task/vocabulary.h"

namespace lockstep::model {
namespace {

constexpr int64_t kPlaceStride = 16;  // pixels of the image to a place
constexpr double kAttendDropout = 0.5;

struct DecoderState {
  at::Tensor hidden, cell;  // [rows, hidden]
};

// What is the same for every word of an image.
struct Places {
  at::Tensor maps;  // [rows, places, channels]
  at::Tensor keys;  // [rows, places, attention], what a hidden state is added to
};

class CaptionHead final : public Block {
 public:
  CaptionHead(const Request& request, int64_t channels)
      : Block("head"),
        caption_(request.caption),
        dropout_(request.model.dropout > 0 ? request.model.dropout : kAttendDropout),
        embedding_(site(request, "embedding"), "weight", {request.model.classes, caption_.embedding},
                   Fill::uniform(0.1)),
        start_(site(request, "init"), channels, channels),
        start_hidden_(site(request, "init_hidden"), channels, caption_.hidden),
        start_cell_(site(request, "init_cell"), channels, caption_.hidden),
        key_(site(request, "key"), channels, channels),
        second_key_(site(request, "key2"), channels, caption_.attention),
        query_(site(request, "query"), "weight", {caption_.attention, caption_.hidden}, fan(caption_.hidden)),
        score_(site(request, "score"), caption_.attention, 1),
        gate_(site(request, "gate"), caption_.hidden, 1),
        from_word_(site(request, "lstm"), "word.weight", {4 * caption_.hidden, caption_.embedding},
                   fan(caption_.hidden)),
        from_hidden_(site(request, "lstm"), "hidden.weight", {4 * caption_.hidden, caption_.hidden},
                     fan(caption_.hidden)),
        from_context_(site(request, "lstm"), channels, 4 * caption_.hidden),
        tell_hidden_(site(request, "tell_hidden"), caption_.hidden, caption_.embedding),
        tell_context_(site(request, "tell_context"), channels, caption_.embedding),
        tell_(make_classifier(site(request, "tell"), caption_.embedding, request.model.classes)) {
    classifier.push_back("decoder.embedding.weight");
  }

  // input: the trunk's map, the words of the captions. While training logits of every word and where was looked for it;
  // else the best caption that was found, and how likely the given ones are.
  Bundle run(const Bundle& input, Mode mode) override {
    const at::Tensor map = input[0].flatten(2).transpose(1, 2);  // [rows, places, channels]
    const at::Tensor& words = input[1];
    const Places places{map, second_key_(key_(map)).tanh()};
    const DecoderState first = start(map, mode);
    const Told told = tell(places, first, words, mode);
    if (mode != Mode::evaluate) return {told.logits, told.attention};
    const at::Tensor logs = at::log_softmax(told.logits, 2).gather(2, words.unsqueeze(2)).squeeze(2);  // [rows, words]
    Bundle found = search(places, first, words.size(1));
    found.push_back(logs);
    return found;
  }

 private:
  struct Told {
    at::Tensor logits, attention;  // float [rows, words, vocabulary], [rows, words, places]
  };
  struct Look {
    at::Tensor context, attention;  // [rows, channels], [rows, places]
  };

  Site site(const Request& request, const std::string& name) {
    return {*this, request.maker, base::text("decoder.", name, ".")};
  }
  static Fill fan(int64_t width) { return Fill::uniform(1 / std::sqrt(static_cast<double>(width))); }

  DecoderState start(const at::Tensor& map, Mode mode) const {
    const at::Tensor mean = dropout(*this, start_(map.mean(1)).relu(), dropout_, mode);
    return {start_hidden_(mean).tanh(), start_cell_(mean).tanh()};
  }

  Look look(const Places& places, const at::Tensor& hidden) const {
    const at::Tensor query = at::linear(hidden, query_()).unsqueeze(1);  // [rows, 1, attention]
    const at::Tensor attention = at::softmax(score_((places.keys + query).tanh()).squeeze(2), 1);
    const at::Tensor seen = at::bmm(attention.unsqueeze(1), places.maps).squeeze(1);
    return {seen * gate_(hidden).sigmoid(), attention};
  }

  // One step of the LSTM; `word`: [rows, 4 hidden], what the word before gives.
  DecoderState next(const at::Tensor& word, const at::Tensor& context, const DecoderState& state) const {
    const at::Tensor sums = word + at::linear(state.hidden, from_hidden_()) + from_context_(context);
    const int64_t width = caption_.hidden;
    const auto part = [&](int64_t i) { return sums.narrow(1, i * width, width); };
    const at::Tensor cell = part(1).sigmoid() * state.cell + part(0).sigmoid() * part(2).tanh();
    return {part(3).sigmoid() * cell.tanh(), cell};
  }

  at::Tensor logits(const at::Tensor& hidden, const at::Tensor& before, const at::Tensor& context, Mode mode) const {
    const at::Tensor all = tell_hidden_(dropout(*this, hidden, dropout_, mode)) + before + tell_context_(context);
    return tell_(dropout(*this, all.tanh(), dropout_, mode)).to(at::kFloat);
  }

  // Every word from the true ones before it. What words give to the LSTM is one product for all steps.
  Told tell(const Places& places, DecoderState state, const at::Tensor& words, Mode mode) const {
    const int64_t rows = words.size(0), length = words.size(1);
    const at::Tensor embedded = at::embedding(embedding_(), words.narrow(1, 0, length - 1));
    const at::Tensor before = at::cat({at::zeros({rows, 1, caption_.embedding}, embedded.options()), embedded}, 1);
    const at::Tensor given = at::linear(before, from_word_());  // [rows, words, 4 hidden]
    std::vector<at::Tensor> hidden, contexts, attention;
    for (int64_t i = 0; i < length; ++i) {
      const Look seen = look(places, state.hidden);
      state = next(given.select(1, i), seen.context, state);
      hidden.push_back(state.hidden);
      contexts.push_back(seen.context);
      attention.push_back(seen.attention.to(at::kFloat));
    }
    return {logits(at::stack(hidden, 1), before, at::stack(contexts, 1), mode), at::stack(attention, 1)};
  }

  // Beam search with fixed shapes: `beam` hypotheses of each image. One that ends leaves, and the beam narrows; the
  // best is that with the largest log probability a word, its end included. Without any end, the best that is left.
  // -> words [rows, length], log probability of each [rows, length], attention [rows, length, places]
  Bundle search(const Places& places, const DecoderState& first, int64_t length) const {
    const int64_t rows = places.maps.size(0), beam = caption_.beam, cells = places.maps.size(1);
    const auto numbers = places.maps.options().dtype(at::kFloat);
    const double never = -std::numeric_limits<double>::infinity();
    const auto spread = [&](const at::Tensor& one) { return one.repeat_interleave(beam, 0); };
    const Places all{spread(places.maps), spread(places.keys)};
    DecoderState state{spread(first.hidden), spread(first.cell)};
    const at::Tensor slots = at::arange(beam, numbers.dtype(at::kLong));
    at::Tensor live =
        at::where(slots.eq(0), at::zeros({1}, numbers), at::full({1}, never, numbers)).expand({rows, beam});
    at::Tensor ended = at::zeros({rows, 1}, numbers);  // hypotheses that have left
    at::Tensor words = at::full({rows, beam, length}, task::kEndWord, numbers);
    at::Tensor logs = at::zeros({rows, beam, length}, numbers);
    at::Tensor attention = at::zeros({rows, beam, length, cells}, numbers);
    at::Tensor best = at::full({rows, 1}, never, numbers), best_words = words.select(1, 0),
               best_logs = logs.select(1, 0), best_attention = attention.select(1, 0);
    at::Tensor before = at::zeros({rows * beam, caption_.embedding}, embedding_().options().requires_grad(false));
    for (int64_t i = 0; i < length; ++i) {
      const Look seen = look(all, state.hidden);
      state = next(at::linear(before, from_word_()), seen.context, state);
      const at::Tensor log = at::log_softmax(logits(state.hidden, before, seen.context, Mode::evaluate), 1);
      const int64_t vocabulary = log.size(1);
      const at::Tensor sums = (live.unsqueeze(2) + log.view({rows, beam, vocabulary})).flatten(1);
      const auto [most, chosen] = at::topk(sums, beam, 1);  // [rows, beam]
      const at::Tensor parent = (chosen.to(at::kDouble) / static_cast<double>(vocabulary)).floor().to(at::kLong);
      const at::Tensor word = chosen - parent * vocabulary;
      const at::Tensor from = (at::arange(rows, slots.options()).unsqueeze(1) * beam + parent).flatten();
      const auto of_parent = [&](const at::Tensor& one) {
        return one.flatten(0, 1).index_select(0, from).view(one.sizes());
      };
      const at::Tensor gained = most - live.gather(1, parent);
      words = of_parent(words);
      logs = of_parent(logs);
      attention = of_parent(attention);
      words.select(2, i).copy_(word);
      logs.select(2, i).copy_(gained);
      attention.select(2, i).copy_(seen.attention.to(at::kFloat).index_select(0, from).view({rows, beam, cells}));
      state = {state.hidden.index_select(0, from), state.cell.index_select(0, from)};
      before = at::embedding(embedding_(), word.flatten());
      const at::Tensor counts = slots.lt(beam - ended).logical_and(most.gt(never));
      const at::Tensor ends = counts.logical_and(word.eq(task::kEndWord));
      const bool is_last = i + 1 == length;
      take_best(at::where(ends, most / static_cast<double>(i + 1), at::full({1}, never, numbers)), words, logs,
                attention, {best, best_words, best_logs, best_attention});
      live = at::where(counts.logical_and(ends.logical_not()), most, at::full({1}, never, numbers));
      ended = ended + ends.to(at::kFloat).sum(1, true);
      if (!is_last) continue;
      const at::Tensor none = best.eq(never);  // [rows, 1]: nothing has ended
      take_best(at::where(none, live / static_cast<double>(length), at::full({1}, never, numbers)), words, logs,
                attention, {best, best_words, best_logs, best_attention});
    }
    return {best_words, best_logs, best_attention};
  }

  struct Best {
    at::Tensor &score, &words, &logs, &attention;
  };
  // Of each row the hypothesis with the best of `scores` [rows, beam], where it is better than the best so far.
  static void take_best(const at::Tensor& scores, const at::Tensor& words, const at::Tensor& logs,
                        const at::Tensor& attention, Best best) {
    const auto top = at::topk(scores, 1, 1);
    const at::Tensor most = std::get<0>(top), slot = std::get<1>(top);  // [rows, 1]
    const at::Tensor is_better = most.gt(best.score);
    const auto pick = [&](const at::Tensor& all, const at::Tensor& old) {
      std::vector<int64_t> shape(static_cast<size_t>(all.dim()), 1), wide = all.sizes().vec();
      shape[0] = all.size(0);
      wide[1] = 1;
      const at::Tensor one = all.gather(1, slot.view(shape).expand(wide)).squeeze(1);
      shape.pop_back();
      return at::where(is_better.view(shape), one, old);
    };
    best.words = pick(words, best.words);
    best.logs = pick(logs, best.logs);
    best.attention = pick(attention, best.attention);
    best.score = at::where(is_better, most, best.score);
  }

  spec::Caption caption_;
  double dropout_;
  Parameter embedding_;
  Linear start_, start_hidden_, start_cell_, key_, second_key_;
  Parameter query_;
  Linear score_, gate_;
  Parameter from_word_, from_hidden_;
  Linear from_context_, tell_hidden_, tell_context_, tell_;
};

Trunk trunk_named(const Request& request, const std::string& name) {
  if (name == "vgg16") return vgg16_trunk(request);
  if (name == "mobilenet_v2") return mobilenet_trunk(request);
  if (name == "efficientnet_lite0") return efficientnet_trunk(request, 0);
  return resnet_trunk(request, name);
}

}  // namespace

Blocks attend_blocks(const Request& request) {
  if (request.image_size.height < kPlaceStride || request.image_size.width < kPlaceStride) {
    throw base::Error(base::Blame::user,
                      base::text("data.image_size: ", spec::to_text(request.image_size),
                                 " has no place to look at for ", request.model.name),
                      base::text(kPlaceStride, " pixels or more each way"));
  }
  Trunk trunk = trunk_named(request, request.model.name.substr(std::string("attend_").size()));
  const Trunk::Map map = trunk.map_of(kPlaceStride);
  Blocks blocks;
  for (auto& block : trunk.blocks) {
    const bool is_last = block->name() == map.block;
    blocks.push_back(std::move(block));
    if (is_last) break;
  }
  blocks.push_back(std::make_unique<CaptionHead>(request, map.channels));
  return blocks;
}

}  // namespace lockstep::model

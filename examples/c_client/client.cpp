// Classifies a batch of images with a compiled network, and says how long that takes.
//
//   client-cpp [BATCH [THREADS]]

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "model.h"

class Classifier {
 public:
  static constexpr std::size_t pixels = MODEL_X_DIM1 * MODEL_X_DIM2 * MODEL_X_DIM3;
  static constexpr std::size_t classes = MODEL_OUTPUT0_DIM1;

  explicit Classifier(int threads) : threads_(threads) {}

  // The scores of every class, image after image.
  std::vector<float> operator()(const std::vector<float> &images) {
    model_inputs inputs{images.data(), static_cast<int64_t>(images.size() / pixels)};
    model_outputs outputs{};
    check(model_shapes(&inputs, &outputs));
    std::vector<float> scores(static_cast<std::size_t>(outputs.output0_dim0) * classes);
    outputs.output0 = scores.data();
    reserve(model_arena_bytes(&inputs));
    check(model_run(&inputs, &outputs, arena_.get(), threads_));
    return scores;
  }

 private:
  static void check(int error) {
    if (error != MODEL_OK) throw std::runtime_error("the model gives error " + std::to_string(error));
  }

  // The arena is kept for the next call, unless that needs a larger one.
  void reserve(std::size_t bytes) {
    if (bytes <= size_) return;
    const std::size_t step = MODEL_ARENA_ALIGNMENT;
    size_ = (bytes + step - 1) / step * step;
    arena_.reset(std::aligned_alloc(step, size_));
    if (!arena_) throw std::bad_alloc();
  }

  int threads_;
  std::size_t size_ = 0;
  std::unique_ptr<void, decltype(&std::free)> arena_{nullptr, &std::free};
};

int main(int argc, char **argv) {
  using Clock = std::chrono::steady_clock;
  const std::size_t batch = argc > 1 ? std::stoul(argv[1]) : 1;
  Classifier classify(argc > 2 ? std::stoi(argv[2]) : 1);

  std::vector<float> images(batch * Classifier::pixels);
  for (std::size_t i = 0; i < images.size(); i++)
    images[i] = static_cast<float>(i % Classifier::pixels * 7919 % 1000) / 1000;

  std::vector<float> scores;
  auto best = Clock::duration::max();
  for (int run = 0; run < 20; run++) {
    const auto start = Clock::now();
    scores = classify(images);
    best = std::min(best, Clock::now() - start);
  }

  std::cout << "classes";
  for (auto first = scores.begin(); first != scores.end(); first += Classifier::classes)
    std::cout << ' ' << std::max_element(first, first + Classifier::classes) - first;
  std::cout << ", " << std::chrono::duration<double, std::milli>(best).count() << " ms\n";
}

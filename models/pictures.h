// Pictures: PNG, JPEG and WebP files as pixels, and random changes of training images.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::models {

/// Red, green and blue of each pixel, row by row.
struct Picture {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> rgb;  // [height, width, 3]
};

/// Of the names of pictures. Files without their ending are looked for in this order.
inline constexpr const char* kImageEndings[] = {".jpg", ".jpeg", ".png", ".webp"};
/// ".jpg, .jpeg, .png or .webp", for messages.
std::string image_endings();

/// True for names with one of these endings, in letters of any size.
bool is_image_name(const std::filesystem::path& path);

/// The picture of a PNG, JPEG or WebP file, told by its content; what is transparent lies on black, 16 bits
/// become their upper 8, CMYK becomes RGB as in Pillow, and EXIF's orientation is applied. A JPEG may come
/// smaller, by a power of two, as long as both sides stay at least as long as `height` and `width`: that is
/// faster. Each error is one line that begins with the path: InvalidArgumentError for another format, for an
/// animated WebP, which is no single picture, and for more than a hundred million pixels; DataLossError for a
/// damaged or truncated file, of which no part is taken; what InputFile throws.
Picture read_image(const std::filesystem::path& path, std::int64_t height, std::int64_t width);

/// A part of a picture, in its pixels; it may begin and end within one. A value.
struct PictureBox {
  double top = 0, left = 0, height = 0, width = 0;
};
/// A picture, and the part of it that was chosen. A value.
struct PicturePart {
  Picture picture;
  PictureBox box;  // in the pixels of `picture`
};
/// read_image for a part. choose: is called once with the height and width of the picture as it is to be
/// seen, and returns the part. A JPEG may come smaller as long as the part is at least height × width.
PicturePart read_image_part(const std::filesystem::path& path, std::int64_t height, std::int64_t width,
                            const std::function<PictureBox(std::int64_t height, std::int64_t width)>& choose);

/// Throws what read_image would throw, as far as the file's header tells: it reads and decodes no more.
void check_image(const std::filesystem::path& path);

/// The middle of `picture`, as large as the sides' ratio of `height` × `width` allows, brought to that size:
/// the mean of the pixels below each new one weighted by a triangle, as wide as the picture shrinks
/// ("bilinear with antialiasing" of Pillow and torchvision). Written to pixels [3,H,W], or [1,H,W],
/// brightness by ITU-R BT.601, for one channel.
void resize_and_crop(const Picture& picture, std::int64_t channels, std::int64_t height, std::int64_t width,
                     std::uint8_t* pixels);

/// The same of a part: pixels outside of it count for nothing, as in torchvision's resized_crop.
void resize_part(const Picture& picture, const PictureBox& box, std::int64_t channels, std::int64_t height,
                 std::int64_t width, std::uint8_t* pixels);

/// Random changes of training images, made in this order. Those of an image follow from seed, epoch and image
/// alone. Names, ranges and formulas are those of torchvision 0.14's transforms of tensors. A value.
struct Augmentation {
  double least_area = 0;        // RandomResizedCrop: a part of the picture, brought to the sample's size, of
                                // this share of the area at least, sides 3:4 to 4:3; 0: none
  double most_degrees = 0;      // RandomRotation to the left and right, bilinear; what comes in is 0
  std::int64_t most_shift = 0;  // pixels up, down, left and right; what comes in is 0
  bool mirrored = false;        // left and right change places in half of the images,
  bool grey_mirrored = true;    // in those of one channel, too: they may be of signs
  double brightness = 0, contrast = 0, saturation = 0;  // ColorJitter, in random order: factors from 1 − X,
                                                        // or 0, to 1 + X
};

/// Of what stands for a part of it where --augment names none.
inline constexpr char kUsualAugmentation[] = "usual";

/// Of items with commas between: "usual" (shift, and flip of images in colour), "crop[:AREA]" (0.08),
/// "rotate[:DEGREES]" (15), "shift[:PIXELS]" (4), "flip", "brightness[:X]", "contrast[:X]", "saturation[:X]"
/// (0.2), or "color[:X]" for the last three. Throws InvalidArgumentError that names the item which is none,
/// or whose number is out of range: AREA above 0 to 1, DEGREES 0 to 180, PIXELS 0 to 1024, X 0 to 10.
Augmentation augmentation_from(std::string_view text);

}  // namespace kolo::models
